import { Refusal } from '../api/refusal.ts'

export type Faults = {
  /** What is wrong with a field of the form, by its pointer. */
  at: Record<string, string>
  /** What belongs to none of them. */
  rest: unknown
}

/**
 * Puts what the API says to the fields that a form has, by their pointers such as `/job/payload`. What is wrong deeper
 * inside of a field is said there, with the place.
 */
export const faultsFor = (error: unknown, fields: readonly string[]): Faults => {
  const at: Record<string, string> = {}
  if (!(error instanceof Refusal)) return { at, rest: error }
  const others: { pointer: string; detail: string }[] = []
  for (const { pointer, detail } of error.errors) {
    const path = pointer.replace(/^#/, '')
    const field = ownerOf(path, fields)
    if (field === undefined) {
      others.push({ pointer, detail })
      continue
    }
    const inside = path.slice(field.length + 1).replaceAll('/', '.')
    const text = inside ? `${inside}: ${detail}` : detail
    at[field] = at[field] ? `${at[field]} · ${text}` : text
  }
  if (error.errors.length === 0) return { at, rest: error }
  if (others.length === 0) return { at, rest: undefined }
  return { at, rest: new Refusal({ title: error.title, detail: error.message, errors: others }) }
}

const ownerOf = (path: string, fields: readonly string[]): string | undefined =>
  fields
    .filter((field) => path === field || path.startsWith(`${field}/`))
    .toSorted((a, b) => b.length - a.length)[0]

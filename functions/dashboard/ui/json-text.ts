import { Refusal } from '../api/refusal.ts'

/** JSON as people edit it. */
export const toJsonText = (value: unknown): string => JSON.stringify(value, null, 2)

/** What somebody has typed, as a value. What is no JSON is refused as the API would refuse it: at its field. */
export const readJson = (text: string, pointer: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    const detail = `is not JSON: ${reasonOf(error)}`
    throw new Refusal({ title: 'Not JSON', detail: '', errors: [{ pointer: `#${pointer}`, detail }] })
  }
}

/** As the browser says it, without the text once more. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^JSON\.parse: /, '').replace(/, "?\.\.\..*$/s, '') : ''

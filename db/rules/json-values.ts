/** Text, a finite number, a boolean or null. */
export const isScalar = (value: unknown): value is string | number | boolean | null =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))

/** An object as JSON has them: no list, no date, no instance of a class. */
export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Whether JSON can say it with no more than `depth` lists and objects inside each other. */
export const isJson = (value: unknown, depth: number): boolean => {
  if (isScalar(value)) return true
  if (depth < 1 || !(Array.isArray(value) || isPlainObject(value))) return false
  return Object.values(value).every((child) => isJson(child, depth - 1))
}

/** Equal as JSON: the order of an object's keys says nothing, types are never converted. */
export const sameJson = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const keys = Object.keys(a)
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(b).length) return false
  return keys.every(
    (key) =>
      Object.hasOwn(b, key) &&
      sameJson((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  )
}

/** About how many characters the value takes as JSON. Counting stops once it is more than `limit`. */
export const roughSize = (value: unknown, limit: number): number => {
  if (typeof value !== 'object' || value === null) return scalarSize(value)
  let size = 0
  const open: unknown[] = [value]
  while (open.length > 0 && size <= limit) {
    const next = open.pop()
    size += scalarSize(next)
    if (typeof next !== 'object' || next === null) continue
    for (const [key, child] of Object.entries(next)) {
      if (!Array.isArray(next)) size += key.length + 4
      open.push(child)
    }
  }
  return size
}

const scalarSize = (value: unknown): number => (typeof value === 'string' ? value.length + 2 : 4)

/** What it is, for people. */
export const kindOf = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** An array as Postgres writes it. For ids and numbers, which need no quoting; drivers quote each value, slowly. */
export const arrayOf = (values: readonly (string | number | boolean)[]): string => `{${values.join(',')}}`

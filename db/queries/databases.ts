import type { Query } from '../query.ts'

/** A row if the server has a database of this name. */
export const findDatabase = (name: string): Query<{ datname: string }> => ({
  name: 'find-database',
  text: `
    select datname
    from pg_database
    where datname = $1::text`,
  values: [name],
})

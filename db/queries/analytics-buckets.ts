/** Time in equal parts, in UTC: fragments of the statements that put rollups together. */

/** Rows of so many seconds, put together to buckets of so many, and how many of those: the last one is the present. */
export type Buckets = { span: 60 | 3600; seconds: number; count: number }

/** The buckets, oldest first: `$2` seconds each, and `$3` of them. */
export const SERIES = `generate_series(
      date_bin($2::int * interval '1 second', now(), 'epoch') - ($3::int - 1) * $2::int * interval '1 second',
      date_bin($2::int * interval '1 second', now(), 'epoch'), $2::int * interval '1 second'
    )`
export const SINCE = `date_bin($2::int * interval '1 second', now(), 'epoch') - ($3::int - 1) * $2::int * interval '1 second'`
export const BUCKET = `date_bin($2::int * interval '1 second', at, 'epoch')`

import type { ComponentProps } from 'preact'
import { Failure, Skeleton } from './notes.tsx'
import { More, type Pages } from './pager.tsx'
import { Table } from './table.tsx'

/** A list of the API as a table: bones, what went wrong, rows, and a button for more of them. */
export const PagedTable = <Row,>({
  pages,
  ...table
}: { pages: Pages<Row> } & Omit<ComponentProps<typeof Table<Row>>, 'rows'>) => {
  const { items, error, reload } = pages
  return (
    <>
      {error.value && <Failure error={error.value} retry={reload} />}
      {items.value ? <Table {...table} rows={items.value} /> : !error.value && <Skeleton />}
      <More pages={pages} />
    </>
  )
}

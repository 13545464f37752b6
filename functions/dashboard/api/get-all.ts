import type { Page } from './answers.ts'
import { get } from './api.ts'

const PAGE = 200

/** All pages of a list that is short but for rare cases. */
export const getAll = async <Item>(path: string, signal: AbortSignal): Promise<Item[]> => {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const page: Page<Item> = await get(path, { limit: PAGE, cursor }, signal)
    items.push(...page.items)
    cursor = page.next_cursor
  } while (cursor !== null)
  return items
}

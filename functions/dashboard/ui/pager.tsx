import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Page } from '../api/answers.ts'
import { get } from '../api/api.ts'
import type { Request } from '../api/send.ts'
import { Button } from './button.tsx'

export type Pages<Item> = {
  readonly items: Signal<Item[] | undefined>
  readonly error: Signal<Error | undefined>
  readonly hasMore: Signal<boolean>
  more(): Promise<void>
  reload(): void
}

/** A list of the API, page by page, by its cursors. `reload` fetches again as many as are shown. */
export const usePages = <Item,>(path: string, query: Request['query'] = {}, limit = 50): Pages<Item> => {
  const items = useSignal<Item[] | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const cursor = useRef<string | null>(null)
  const hasMore = useSignal(false)
  const generation = useRef(0)
  const key = JSON.stringify([path, query, limit])

  const load = async (wanted: number, from: Item[], after: string | null): Promise<void> => {
    const own = ++generation.current
    try {
      let [all, next] = [from, after]
      do {
        const page: Page<Item> = await get(path, { ...query, limit, cursor: next })
        if (own !== generation.current) return
        all = [...all, ...page.items]
        next = page.next_cursor
      } while (next !== null && all.length < wanted)
      items.value = all
      cursor.current = next
      hasMore.value = next !== null
      error.value = undefined
    } catch (reason) {
      if (own === generation.current) error.value = reason as Error
    }
  }

  useEffect(() => {
    items.value = undefined
    void load(1, [], null)
    return () => {
      generation.current++
    }
  }, [key])

  return {
    items,
    error,
    hasMore,
    more: () => load((items.value?.length ?? 0) + 1, items.value ?? [], cursor.current),
    reload: () => void load(items.peek()?.length ?? 1, [], null),
  }
}

export const More = ({ pages }: { pages: Pages<unknown> }) =>
  pages.hasMore.value ? (
    <div class="more">
      <Button onClick={pages.more}>Show more</Button>
    </div>
  ) : null

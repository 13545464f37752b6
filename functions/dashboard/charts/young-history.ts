/** How many are shown in any case, so that a line is a line. */
const LEAST = 15

/**
 * What a chart shows of a history that has only begun: nothing of the time before, in which nothing was counted. `isEmpty`
 * tells a bucket without anything in it.
 */
export const sinceFirst = <Item>(items: readonly Item[], isEmpty: (item: Item) => boolean): Item[] => {
  const first = items.findIndex((item) => !isEmpty(item))
  const last = Math.max(0, items.length - LEAST)
  return items.slice(Math.min(last, first === -1 ? 0 : Math.max(0, first - 1)))
}

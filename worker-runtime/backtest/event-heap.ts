/** The earliest first; of equal times the one that was added first. */
export type EventHeap<Item> = {
  push(at: number, item: Item): void
  peekAt(): number
  pop(): Item
  size(): number
}

type Node<Item> = { at: number; order: number; item: Item }

export const createEventHeap = <Item>(): EventHeap<Item> => {
  const heap: Node<Item>[] = []
  let added = 0

  const isBefore = (a: Node<Item>, b: Node<Item>): boolean =>
    a.at < b.at || (a.at === b.at && a.order < b.order)
  const at = (n: number): Node<Item> => heap[n] as Node<Item>
  const swap = (a: number, b: number): void => {
    const first = at(a)
    heap[a] = at(b)
    heap[b] = first
  }

  const rise = (from: number): void => {
    for (let n = from; n > 0; ) {
      const parent = (n - 1) >> 1
      if (!isBefore(at(n), at(parent))) return
      swap(n, parent)
      n = parent
    }
  }

  const sink = (): void => {
    for (let n = 0; ; ) {
      let least = n
      for (const child of [2 * n + 1, 2 * n + 2]) {
        if (child < heap.length && isBefore(at(child), at(least))) least = child
      }
      if (least === n) return
      swap(n, least)
      n = least
    }
  }

  return {
    push: (time, item) => rise(heap.push({ at: time, order: added++, item }) - 1),
    peekAt: () => heap[0]?.at ?? Number.POSITIVE_INFINITY,
    pop: () => {
      const { item } = at(0)
      const last = heap.pop() as Node<Item>
      if (heap.length > 0) {
        heap[0] = last
        sink()
      }
      return item
    },
    size: () => heap.length,
  }
}

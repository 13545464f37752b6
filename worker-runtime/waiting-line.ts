/** A queue whose ends are both cheap to take from: an array is copied whenever its first element leaves. */
export type WaitingLine<Entry> = {
  length(): number
  add(entry: Entry): void
  first(): Entry | undefined
  shift(): void
  remove(entry: Entry): void
  /** Up to so many from the end, in their order. */
  takeLast(count: number): Entry[]
  takeWhere(wanted: (entry: Entry) => boolean): Entry[]
}

/** What has left at the front is forgotten once it is more than this, and more than what is left. */
const SLACK = 64

export const createWaitingLine = <Entry>(): WaitingLine<Entry> => {
  let entries: Entry[] = []
  let gone = 0

  return {
    length: () => entries.length - gone,
    add: (entry) => entries.push(entry),
    first: () => entries[gone],
    shift: () => {
      gone++
      if (gone < SLACK || gone * 2 < entries.length) return
      entries = entries.slice(gone)
      gone = 0
    },
    remove: (entry) => {
      entries = entries.slice(gone).filter((other) => other !== entry)
      gone = 0
    },
    takeLast: (count) => entries.splice(Math.max(gone, entries.length - count)),
    takeWhere: (wanted) => {
      const { taken = [], left = [] } = Object.groupBy(entries.slice(gone), (entry) =>
        wanted(entry) ? 'taken' : 'left',
      )
      entries = left
      gone = 0
      return taken
    },
  }
}

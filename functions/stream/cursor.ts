import type { EventPosition } from '../../db/queries/callback-cursor.ts'

/** A place in the stream as clients keep it. They need not know what it is made of. */
export const formatCursor = ({ xid, id, position }: EventPosition): string => `${xid}-${id}-${position}`

const GREATEST = { xid: 2n ** 64n - 1n, id: 2n ** 63n - 1n, position: 2n ** 31n - 1n }

export const parseCursor = (text: string): EventPosition | undefined => {
  const [, xid, id, position] = /^(\d{1,20})-(\d{1,19})-(\d{1,10})$/.exec(text) ?? []
  if (xid === undefined || id === undefined || position === undefined) return undefined
  const fits =
    BigInt(xid) <= GREATEST.xid && BigInt(id) <= GREATEST.id && BigInt(position) <= GREATEST.position
  return fits ? { xid, id, position: Number(position) } : undefined
}

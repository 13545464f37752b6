import type { StreamPlace } from '../../db/queries/stream.ts'

/** A place in the stream as clients keep it. They need not know what it is made of. */
export const formatCursor = ({ incarnation, xid, id, position }: StreamPlace): string =>
  `${incarnation}-${xid}-${id}-${position}`

const GREATEST = { xid: 2n ** 64n - 1n, id: 2n ** 63n - 1n, position: 2n ** 31n - 1n }

export const parseCursor = (text: string): StreamPlace | undefined => {
  const [, incarnation, xid, id, position] =
    /^([0-9a-f]{16})-(\d{1,20})-(\d{1,19})-(\d{1,10})$/.exec(text) ?? []
  if (!incarnation || !xid || !id || !position) return undefined
  const fits =
    BigInt(xid) <= GREATEST.xid && BigInt(id) <= GREATEST.id && BigInt(position) <= GREATEST.position
  return fits ? { incarnation, xid, id, position: Number(position) } : undefined
}

/** The flows after one and before another. */
export type Gap = { after: number; before: number }

export const ALL_FLOWS: Gap = { after: -1, before: Number.MAX_SAFE_INTEGER }

/** The high bits of a flow are the number of its organisation (see flow_of). Exact up to two million organisations. */
export const orgNumberOf = (flow: number): number => Math.floor(flow / 2 ** 32)

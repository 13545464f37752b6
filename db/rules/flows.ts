/** The high bits of a flow are the number of its organisation (see flow_of). Exact up to two million organisations. */
export const orgNumberOf = (flow: number): number => Math.floor(flow / 2 ** 32)

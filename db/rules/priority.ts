export const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const

export type Priority = (typeof PRIORITIES)[number]

/** How much a second of waiting costs in each class, relative to `normal`. */
const WEIGHTS: Record<Priority, number> = { critical: 64, high: 8, normal: 1, low: 1 / 8 }

/** Order in the queue, lowest first. Jobs of one class run in order of arrival. */
export const rankOf = (priority: Priority): number => -Math.log(WEIGHTS[priority])

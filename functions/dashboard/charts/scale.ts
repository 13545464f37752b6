/** Where values stand on an axis: 0 is its beginning, 1 its end. */
export type Scale = {
  place(value: number): number
  ticks: readonly { value: number; label: string }[]
}

/** From 0 to a little above the largest value, in steps of 1, 2 or 5. */
export const linearScale = (
  largest: number,
  format: (value: number) => string,
  about = 5,
): Scale & { end: number } => {
  const step = niceStep((largest > 0 ? largest : 1) / about)
  const steps = Math.max(1, Math.ceil((largest > 0 ? largest : 1) / step - 1e-9))
  const end = steps * step
  return {
    end,
    place: (value) => value / end,
    ticks: Array.from({ length: steps + 1 }, (_, n) => ({ value: n * step, label: format(n * step) })),
  }
}

const niceStep = (least: number): number => {
  const power = 10 ** Math.floor(Math.log10(least))
  return (([1, 2, 5] as const).find((factor) => factor * power >= least - power * 1e-9) ?? 10) * power
}

/** Leaves out ticks that stand closer than `gap` (a share of the axis) to the one before. */
export const apart = (scale: Scale, gap: number): Scale['ticks'] => {
  let last = Number.NEGATIVE_INFINITY
  return scale.ticks.filter(({ value }) => {
    const at = scale.place(value)
    if (at - last < gap) return false
    last = at
    return true
  })
}

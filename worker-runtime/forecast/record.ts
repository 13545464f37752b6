/** How good forecasts were, beside those that need no network: sums over stretches of time, the oldest of which are forgotten. */

/** `steady`: the recent level goes on. That much is known without any forecast. */
export const RIVALS = ['last_hour', 'seasonal', 'steady'] as const
export type Rival = (typeof RIVALS)[number]

/** Absolute errors of the work within one window, or sums of them. */
export type Errors = Record<'lstm' | Rival, number>

export type Stretch = {
  /** When: time since 1970 by the length of a stretch. */
  at: number
  windows: number
  work: number
  /** What the forecasts said of it. */
  forecast: number
  /** Windows that stayed below their p90. */
  covered: number
  errors: Errors
}

export type JudgedWindow = {
  minute: number
  work: number
  forecast: number
  isCovered: boolean
  errors: Errors
}

/** Three days, if a stretch is half an hour. */
const KEPT_STRETCHES = 144

export const addJudged = (record: Stretch[], judged: JudgedWindow, stretchMinutes: number): void => {
  const at = Math.floor(judged.minute / stretchMinutes)
  if (record.at(-1)?.at !== at) {
    record.push({
      at,
      windows: 0,
      work: 0,
      forecast: 0,
      covered: 0,
      errors: { lstm: 0, last_hour: 0, seasonal: 0, steady: 0 },
    })
    record.splice(0, record.length - KEPT_STRETCHES)
  }
  const stretch = record.at(-1) as Stretch
  stretch.windows++
  stretch.work += judged.work
  stretch.forecast += judged.forecast
  if (judged.isCovered) stretch.covered++
  for (const name of ['lstm', ...RIVALS] as const) stretch.errors[name] += judged.errors[name]
}

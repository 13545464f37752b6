/**
 * Whether a forecast may scale workers. It is measured by the mean absolute error of the work within the lead time: of what
 * workers are added for, in the unit that they are counted in. A share of each window's own work would make the quiet nights,
 * when nobody is needed, count as much as the mornings; squares would make one odd hour count for a day.
 */
import { RIVALS, type Rival, type Stretch } from './record.ts'

export type Evaluation = {
  /** Windows that were judged, one for each minute. */
  minutes: number
  /** Work within a window, in the mean. */
  mean_work_seconds: number
  /** Mean absolute errors, as shares of that. */
  errors: Record<'lstm' | Rival, number>
  /** What the forecasts add up to, as a share of the work: below 1, as a median does not foresee what comes rarely. */
  foreseen: number
  /** The share of windows that stayed below their p90: 0.9 if it is right. */
  coverage: number
}

/**
 * The error must be so much lower than a rival's. Of the level less is asked, as it is hard to beat within a minute or two: on
 * a slow daily rise it is only 4 % worse, and on noise just as good.
 */
const MARGINS: Record<Rival, number> = { last_hour: 0.05, seasonal: 0.05, steady: 0.02 }
/** And it must be beyond doubt: of random differences one in forty is as large. */
const Z_NEEDED = 2
/** Who forecasts nothing at all has an error of all the work: a forecast must be clearly better than that. */
const MOST_ERROR = 0.8

const WORDS: Record<Rival, string> = {
  last_hour: 'What came an hour before',
  seasonal: 'What came at the same time of an earlier day',
  steady: 'The level of the last minutes',
}

export const evaluate = (record: readonly Stretch[]): Evaluation => {
  const minutes = sum(record, ({ windows }) => windows)
  const work = sum(record, (stretch) => stretch.work)
  const share = (name: 'lstm' | Rival): number =>
    work > 0 ? round(sum(record, ({ errors }) => errors[name]) / work) : 0
  return {
    minutes,
    mean_work_seconds: round(work / 1000 / Math.max(1, minutes)),
    errors: {
      lstm: share('lstm'),
      last_hour: share('last_hour'),
      seasonal: share('seasonal'),
      steady: share('steady'),
    },
    foreseen: work > 0 ? round(sum(record, ({ forecast }) => forecast) / work) : 0,
    coverage: round(sum(record, ({ covered }) => covered) / Math.max(1, minutes)),
  }
}

/** Null: it may. */
export const whyUnusable = (record: readonly Stretch[]): string | null => {
  const { errors, mean_work_seconds: work } = evaluate(record)
  if (work === 0) return 'No work has come unannounced in the time that the forecast was measured on.'
  for (const rival of RIVALS) {
    const own = sum(record, (stretch) => stretch.errors.lstm)
    const others = sum(record, (stretch) => stretch.errors[rival])
    if (own <= (1 - MARGINS[rival]) * others && certainty(record, rival) > Z_NEEDED) continue
    return `${WORDS[rival]} says as much: its error is ${percent(errors[rival])} of the work, the forecast's ${percent(errors.lstm)}.`
  }
  if (errors.lstm <= MOST_ERROR) return null
  return `The forecast's error is ${percent(errors.lstm)} of the work, and may be ${percent(MOST_ERROR)} at most.`
}

/**
 * How sure it is that the forecast is better, as z. Windows that follow each other overlap and err alike, so gains are added up
 * by stretch, and z is that of these sums. With few stretches it stays small unless all of them say the same.
 */
const certainty = (record: readonly Stretch[], rival: Rival): number => {
  const gains = record.map(({ errors }) => errors[rival] - errors.lstm)
  const squares = gains.reduce((total, gain) => total + gain * gain, 0)
  return squares > 0 ? gains.reduce((total, gain) => total + gain, 0) / Math.sqrt(squares) : 0
}

const sum = (record: readonly Stretch[], value: (stretch: Stretch) => number): number =>
  record.reduce((total, stretch) => total + value(stretch), 0)

const percent = (share: number): string => `${Math.round(100 * share)} %`

/** For people. */
const round = (value: number): number => Math.round(value * 1e4) / 1e4

import { COLLEAGUE } from './company-life.ts'
import { describeModel } from './progress.ts'
import type { Summary } from './summary.ts'
import { PASSWORD } from './tenants.ts'
import { factor, milliseconds, padColumns, share, whole } from './text.ts'

/** The end of the demo, for people: what it has shown, and what to look at. */
export const renderReport = (summary: Summary): string =>
  [...renderNumbers(summary), '', ...renderSeries(summary), '', ...renderPlaces(summary)].join('\n')

const tenth = (value: number): number => Math.round(value * 10) / 10

const ENDINGS = {
  done: 'Done',
  interrupted: 'Ended early',
  unreachable: 'SmartQueue does not answer any more; ended',
} as const

const renderNumbers = (summary: Summary): string[] => {
  const { prediction, eta, deadlines, pipelines, deliveries, dead_letters } = summary
  const { first, early, late } = prediction
  const phase = summary.phase_seconds
  const delivered = Object.entries(deliveries).map(([status, count]) => `${count} ${status}`)
  return [
    `${ENDINGS[summary.ended]} after ${summary.seconds} s: ${whole(summary.completed)} jobs completed, ` +
      `${whole(summary.failed)} failed, ${whole(summary.cancelled)} cancelled, ${whole(summary.open)} still open.`,
    `Predictions were off by ${factor(first.off_by)} in the first ${tenth(phase / 3)} s, by ${factor(early.off_by)} in the first ${phase} s` +
      (late.jobs > 0
        ? ` and by ${factor(late.off_by)} in the last ${phase} s, when ${share(late.p90_coverage)} of the runtimes stayed below their p90.`
        : '.'),
    `Promises: ${share(eta.early.share)} of the jobs had ended by their finish_p90_at in the first ${phase} s, ${share(eta.late.share)} in the last.`,
    `Model: ${describeModel(summary.model)}.`,
    `Deadlines: ${whole(deadlines.met)} met, ${whole(deadlines.missed)} missed; of ${whole(deadlines.at_risk)} it was said at submission that they were at risk.`,
    `Pipelines: ${pipelines.completed} of ${pipelines.submitted} done. Webhooks: ${delivered.join(', ') || 'none'}. Sent twice, run once: ${summary.replayed}.`,
    ...dead_letters.map(
      ({ tenant, count, message }) =>
        `Dead letters of ${tenant}: ${count === 1 ? '1 job' : `${count} jobs`}, ${shorten(message)}`,
    ),
    ...(summary.refused > 0
      ? [
          `Not taken, or not answered: ${summary.refused} requests, the last one with: ${summary.last_refusal}`,
        ]
      : []),
  ]
}

/** The first line, as far as a line of the terminal has room. */
const shorten = (message: string): string => {
  const [line = ''] = message.split('\n')
  return line.length > MESSAGE_WIDTH ? `${line.slice(0, MESSAGE_WIDTH - 1)}…` : line
}

const MESSAGE_WIDTH = 90

const renderSeries = ({ series, phase_seconds }: Summary): string[] =>
  padColumns(
    [
      [
        'tenant',
        'series',
        'type',
        'runtimes',
        'jobs',
        'predicted',
        'took, ms',
        'off by',
        'predicted',
        'took, ms',
        'off by',
      ],
      ...series.map(({ tenant, name, type, runtimes, completed, early, late }) => [
        ...[tenant, name, type, runtimes, whole(completed)],
        ...[early, late].flatMap(({ predicted_ms, actual_ms, off_by }) => [
          milliseconds(predicted_ms),
          milliseconds(actual_ms),
          factor(off_by),
        ]),
      ]),
    ],
    4,
  ).flatMap((line, n) => (n === 0 ? [nameOfPhases(line, phase_seconds), line] : [line]))

/** Above the three columns of each phase. */
const nameOfPhases = (heading: string, seconds: number): string => {
  const [first, second] = [heading.indexOf('predicted'), heading.lastIndexOf('predicted')]
  return `${' '.repeat(first)}${`first ${seconds} s`.padEnd(second - first)}last ${seconds} s`
}

const renderPlaces = ({ url }: Summary): string[] => {
  const credentials = JSON.stringify({ username: 'Acme-Payments', password: PASSWORD })
  const token = `sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p'`
  return [
    `What to look at: ${url}/`,
    `  Sign in as Northwind-Analytics, Acme-Payments, Zephyr-Media or ${COLLEAGUE}; the password is ${PASSWORD}`,
    ...padColumns(
      [
        ['', `${url}/#/`, 'what is queued, runs, and how fast'],
        ['', `${url}/#/jobs`, 'all jobs; a job shows its prediction, attempts, log and graph'],
        ['', `${url}/#/dead-letters`, 'failures, grouped by what went wrong; replay them (Acme-Payments)'],
        ['', `${url}/#/model`, 'versions of the network, and why each was promoted or not'],
        ['', `${url}/#/schedules`, 'a schedule, paused now: resume it (Northwind-Analytics)'],
        ['', `${url}/#/webhooks`, 'deliveries: accepted, filtered, quarantined (Zephyr-Media)'],
        [
          '',
          `${url}/#/organisation`,
          `two roles: Acme-Payments, and ${COLLEAGUE} once they choose Acme-Payments above their name; an open invitation (Northwind-Analytics)`,
        ],
      ],
      3,
    ),
    '  Or on the command line:',
    `  TOKEN=$(curl -s ${url}/auth/login -H 'content-type: application/json' -d '${credentials}' | ${token})`,
    `  curl -s ${url}/dlq -H "authorization: Bearer $TOKEN"`,
    `  curl -s ${url}/model -H "authorization: Bearer $TOKEN"`,
  ]
}

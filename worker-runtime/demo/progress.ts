import { phasesOf } from './accuracy.ts'
import { type Snapshot, sumOf, type TenantCount } from './snapshot.ts'
import { factor, padColumns, share, whole } from './text.ts'

export type Progress = {
  show(snapshot: Snapshot): void
  /** Leaves what was shown last, and goes on below. */
  end(): void
}

const LINE_EVERY_MS = 5_000

/** On a terminal a board that is drawn anew in place; elsewhere a line every five seconds. */
export const createProgress = (stream: NodeJS.WriteStream): Progress => {
  let drawn = 0
  let lineAtMs = Number.NEGATIVE_INFINITY
  const depths: number[] = []

  const draw = (snapshot: Snapshot): void => {
    // A line that wraps would be two, and the next drawing would begin too low.
    const lines = renderBoard(snapshot, depths).map((line) => line.slice(0, (stream.columns || 80) - 1))
    stream.write(`${drawn > 0 ? `\x1b[${drawn}A` : ''}\x1b[J${lines.join('\n')}\n`)
    drawn = lines.length
  }

  return {
    show: (snapshot) => {
      depths.push(snapshot.queue.ready)
      if (stream.isTTY) return draw(snapshot)
      if (snapshot.elapsedMs - lineAtMs < LINE_EVERY_MS) return
      lineAtMs = snapshot.elapsedMs
      stream.write(`${renderLine(snapshot)}\n`)
    },
    end: () => {
      if (drawn > 0) stream.write('\n')
      drawn = 0
    },
  }
}

const BAR = 30

const renderBoard = (snapshot: Snapshot, depths: readonly number[]): string[] => {
  const { elapsedMs, durationMs, tenants, queue, early, late, eta, model } = snapshot
  const filled = Math.min(BAR, Math.round((elapsedMs / durationMs) * BAR))
  const bar = `${'█'.repeat(filled)}${'░'.repeat(BAR - filled)}`
  return [
    `${bar} ${seconds(elapsedMs)} of ${seconds(durationMs)}`,
    '',
    ...padColumns([['', 'submitted', 'finished', 'failed', 'waiting'], ...tenants.map(tenantRow)]),
    '',
    `queue       ${whole(queue.ready)} ready, ${whole(queue.running)} running, ${whole(queue.other)} wait for other jobs or a retry`,
    `            ${sparkline(depths.slice(-60))}`,
    `prediction  off by ${describeErrors(snapshot)}`,
    `p90         ${share((late.jobs > 0 ? late : early).p90_coverage)} of the runtimes stayed below it (90 % is right)`,
    `eta         ${share((late.jobs > 0 ? eta.late : eta.early).share)} had ended by the time that was promised for nine of ten`,
    `model       ${describeModel(model)}`,
    `            ${whole(model.learned)} executions learned from so far`,
  ]
}

const tenantRow = ({ name, submitted, completed, failed, cancelled, open }: TenantCount): string[] => [
  name,
  ...[submitted, completed + failed + cancelled, failed, open].map(whole),
]

export const renderLine = ({ elapsedMs, tenants, queue, first, early, late, eta, model }: Snapshot): string =>
  [
    seconds(elapsedMs).padStart(5),
    `${whole(sumOf(tenants, 'submitted'))} submitted`,
    `${whole(sumOf(tenants, 'completed'))} completed`,
    `${whole(sumOf(tenants, 'failed'))} failed`,
    `${whole(queue.ready)} ready`,
    `off by ${[first, early, ...(late.jobs > 0 ? [late] : [])].map(({ off_by }) => factor(off_by)).join(' → ')}`,
    `p90 ${share((late.jobs > 0 ? late : early).p90_coverage)}`,
    `eta ${share((late.jobs > 0 ? eta.late : eta.early).share)}`,
    model.trained_on > 0 ? `network ${model.version}` : 'no network yet',
  ].join(' · ')

const describeErrors = ({ durationMs, first, early, late }: Snapshot): string => {
  const { firstUntilMs, earlyUntilMs } = phasesOf(durationMs)
  const now = late.jobs > 0 ? `, ${factor(late.off_by)} now` : ''
  return `${factor(first.off_by)} in the first ${seconds(firstUntilMs)}, ${factor(early.off_by)} in the first ${seconds(earlyUntilMs)}${now}`
}

export const describeModel = ({ version, trained_on }: Snapshot['model']): string =>
  trained_on === 0
    ? 'running estimates; no version of the network is better yet'
    : `version ${version} of the network, trained on ${whole(trained_on)} executions`

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

const LEVELS = ' ▁▂▃▄▅▆▇█'

/** How the queue has grown and shrunk. */
const sparkline = (depths: readonly number[]): string => {
  const most = Math.max(8, ...depths)
  return depths.map((depth) => LEVELS[Math.ceil((depth / most) * (LEVELS.length - 1))]).join('')
}

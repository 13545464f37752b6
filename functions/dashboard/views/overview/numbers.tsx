import type { Summary } from '../../api/answers.ts'
import { summary } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { count, counted, duration, percent, rate, seconds, things } from '../../ui/format.ts'
import { Stat, Stats } from '../../ui/panel.tsx'

/** The numbers of the stream, as soon as they have changed. */
export const Numbers = () => {
  const now = summary.value
  return (
    <Stats>
      <Stat
        label="Queued"
        href={linkTo('/jobs', { status: 'ready' })}
        value={count(now?.depth.ready)}
        unit={things(now?.depth.ready, 'job')}
        note={now && waitingNote(now)}
      />
      <Stat
        label="Running"
        href={linkTo('/jobs', { status: 'running' })}
        value={count(now?.depth.running)}
        unit={things(now?.depth.running, 'job')}
        note={now && `${counted(now.workers.slots, 'slot')} in all`}
      />
      <Stat
        label="Throughput"
        value={rate(now?.throughput_per_minute)}
        unit="jobs/min"
        note={now && `${rate(now.submitted_per_minute)} submitted/min`}
      />
      <Stat
        label="Success rate"
        value={percent(now?.last_24h.success_rate)}
        note={now && `${count(now.last_24h.failed)} failed in 24 h`}
      />
      <Stat label="Wait, median" value={duration(now?.last_hour.wait_p50_ms)} note={now && waitNote(now)} />
      <Stat
        label="Drain time"
        value={now?.workers.online === 0 ? 'never' : seconds(now?.backlog.drain_seconds)}
        note={now && `${seconds(now.backlog.predicted_seconds)} of predicted work`}
      />
      <Stat
        label="Workers"
        href={linkTo('/workers')}
        value={count(now?.workers.online)}
        unit="online"
        note={now && workersNote(now)}
      />
      <Stat
        label="Forecast"
        value={count(now?.forecast.depth)}
        unit="queued"
        note={now && `in ${seconds(now.forecast.in_seconds)}`}
      />
    </Stats>
  )
}

const waitingNote = ({ depth }: Summary): string => {
  const parts = (['pending', 'blocked', 'retrying'] as const).flatMap((state) =>
    depth[state] > 0 ? [`${count(depth[state])} ${state}`] : [],
  )
  return parts.join(', ') || 'nothing else waits'
}

const waitNote = ({ last_hour: { wait_p90_ms } }: Summary): string =>
  wait_p90_ms === null
    ? 'no job has started in the last hour'
    : `9 of 10 below ${duration(wait_p90_ms)}, last hour`

const workersNote = ({ workers }: Summary): string => {
  if (workers.online === 0) return 'no worker runs: jobs wait'
  if (workers.wanted !== null && workers.wanted > workers.online)
    return `the work ahead asks for ${count(workers.wanted)}`
  return workers.draining > 0
    ? `${count(workers.draining)} draining`
    : `${count(workers.running)} of ${count(workers.slots)} slots busy`
}

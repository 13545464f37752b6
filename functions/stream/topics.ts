import { isoTime } from '../../db/iso-time.ts'
import { followJob } from '../../db/queries/job-logs.ts'
import { getLeader, listWorkers } from '../../db/queries/registry.ts'
import type { Run } from '../../db/query.ts'
import { encodeCursor } from '../http/pagination.ts'
import { viewProgress } from '../jobs/job-view.ts'
import { viewLeader, viewWorker } from '../jobs/registry-view.ts'
import { identityOf, type Subscriber, type TopicName } from './subscriber.ts'

export type TopicFrame = { type: string; [field: string]: unknown }

/** What is read for subscribers besides the events: the newest state, of which nothing is owed to those who miss some. */
export type Topic = {
  readonly name: Exclude<TopicName, 'events'>
  /** Between two reads while something happens, and while nothing does. */
  readonly minIntervalMs: number
  readonly idleIntervalMs: number
  /** Subscribers with the same key share a read. */
  keyOf(subscriber: Subscriber): string
  /** Whether it is read with the rights of an admin, who sees more. Each admin then needs a key of their own. */
  isForAdmin?(subscriber: Subscriber): boolean
  read(run: Run, subscriber: Subscriber): Promise<TopicNews>
}

/** A frame is sent to those who were last sent another of its type. */
export type TopicNews = {
  frames: TopicFrame[]
  /** By which frames are told apart, if not by all that is in them. */
  gist?: string
  logsAfter?: string
  /** It was too much for one read. */
  more?: boolean
}

/** As `GET /analytics/summary` answers it. */
export type ReadSummary = (run: Run, orgId: string) => Promise<object>

export const createTopics = (readSummary: ReadSummary): Topic[] => [
  summaryTopic(readSummary),
  workersTopic,
  logsTopic,
]

const summaryTopic = (read: ReadSummary): Topic => ({
  name: 'summary',
  minIntervalMs: 1_000,
  idleIntervalMs: 5_000,
  keyOf: () => '',
  read: async (run, { member }) => ({
    frames: [{ type: 'summary', summary: await read(run, member.orgId) }],
  }),
})

const MOST_WORKERS = 200
/** Whoever works is seen every second or two. Alone that is news this often only. */
const SEEN_MS = 5_000

const gistOf = (view: object): string =>
  JSON.stringify(view, (key, value) =>
    key === 'last_seen' ? Math.floor(Date.parse(value) / SEEN_MS) : value,
  )

const workersTopic: Topic = {
  name: 'workers',
  minIntervalMs: 2_000,
  idleIntervalMs: 5_000,
  // Each admin has a read of their own: one who is no admin any more takes nothing from the others.
  keyOf: (subscriber) => (subscriber.isAdmin ? `all ${identityOf(subscriber)}` : 'own'),
  isForAdmin: ({ isAdmin }) => isAdmin,
  read: async (run, { isAdmin, member }) => {
    const page = { after: null, limit: MOST_WORKERS }
    const [workers, [leader]] = await Promise.all([
      run(listWorkers(isAdmin ? null : member.orgId, page)),
      run(getLeader()),
    ])
    const view = { workers: workers.map(viewWorker), leader: leader ? viewLeader(leader) : null }
    return { frames: [{ type: 'workers', ...view }], gist: gistOf(view) }
  },
}

const MOST_LINES = 200

/** A job writes without changing its state: nothing tells that there is a line. */
const logsTopic: Topic = {
  name: 'logs',
  minIntervalMs: 300,
  idleIntervalMs: 1_000,
  keyOf: ({ filter, logsAfter }) => `${filter.job_id} ${logsAfter}`,
  read: async (run, { member, filter, logsAfter }) => {
    const jobId = filter.job_id ?? ''
    const [job] = await run(followJob({ orgId: member.orgId, jobId, after: logsAfter, limit: MOST_LINES }))
    if (!job) return { frames: [] }
    const lines = job.lines.map(({ at, level, message, attempt }) => ({
      ...{ at: isoTime(at), level, message, attempt },
    }))
    const logs = { type: 'logs', job_id: jobId, lines, cursor: encodeCursor(job.newest) }
    const progress = { type: 'progress', job_id: jobId, progress: viewProgress(job.progress, job.note) }
    return {
      frames: lines.length > 0 ? [logs, progress] : [progress],
      logsAfter: job.newest,
      more: lines.length === MOST_LINES,
    }
  },
}

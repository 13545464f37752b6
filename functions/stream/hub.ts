/**
 * The stream of one organisation: everybody who follows it, and one reader for all of them. Whoever is up to date stands at
 * the same place, and one read serves them all; whoever is behind is read for from their own place, in the same statement.
 *
 * All there is to know of a socket is kept with it, so that the object may lose its memory between two reads.
 */
import { followJob } from '../../db/queries/job-logs.ts'
import type { StreamPage, StreamVerdict } from '../../db/queries/stream.ts'
import type { Database } from '../database.ts'
import { createAlarmClock } from './alarm-clock.ts'
import { BAD_FRAME, readClientFrame } from './client-frame.ts'
import { CLOSE, type Refusal } from './close-codes.ts'
import { formatCursor } from './cursor.ts'
import { deliver, isDue, MOST_BEHIND, resync, tellEvents } from './delivery.ts'
import { paceMs, REST_MS } from './pace.ts'
import { createReader, type Reader } from './reader.ts'
import {
  type Follower,
  giveCredit,
  identityOf,
  type Socket,
  type Subscriber,
  subscribe,
  type Wish,
} from './subscriber.ts'
import { createTopicReader } from './topic-reader.ts'
import type { Topic } from './topics.ts'

export type Hub = {
  /** Answers who may not follow, or has the socket opened. */
  connect(
    follower: Follower,
    wish: Wish,
    open: (subscriber: Subscriber) => Socket,
  ): Promise<Refusal | undefined>
  receive(socket: Socket, message: string | ArrayBuffer): void
  /** Something has been committed, or somebody may have been removed. Answers how many follow. */
  nudge(): number
  wake(): Promise<void>
}

const LIMITS = { events: 1_000, groups: 500, behind: MOST_BEHIND + 1 }
/** To find out where the stream stands. */
const GLANCE = { events: 1, groups: 2, behind: 0 }
/** Read for at once. Others wait for the next read, which then follows immediately. */
const MOST_PLACES = 8
export const MOST_SUBSCRIBERS = 500
export const MOST_OF_ONE = 50
const PING_MS = 25_000
/** After a read that failed. */
const TROUBLED_MS = 1_000

export const createHub = (options: {
  database: Database
  topics: readonly Topic[]
  sockets: () => Socket[]
  storage: Pick<DurableObjectStorage, 'setAlarm'>
  onError: (error: unknown) => void
}): Hub => {
  const { database, sockets, onError } = options
  const clock = createAlarmClock(options.storage, () => void wake())
  const topics = createTopicReader(options.topics, onError)
  /** Waiting to be let in. */
  let joining: Follower[] = []
  let reading = false
  let wanted = false
  /** When something last happened, as those who were there remember. */
  let livelyAt = Math.max(0, ...sockets().map(({ subscriber }) => subscriber.livelyAt))
  let readAt = 0
  let turn = 0

  const readerOf = (follower: Follower): Reader => createReader(database, follower.member.orgId)

  const connect: Hub['connect'] = async (follower, wish, open) => {
    const others = [...sockets().map(({ subscriber }) => subscriber), ...joining]
    if (others.length >= MOST_SUBSCRIBERS) return 'full'
    const own = others.filter((one) => identityOf(one) === identityOf(follower))
    if (own.length >= MOST_OF_ONE) return 'too-many'
    joining.push(follower)
    try {
      const { verdicts, pages } = await readerOf(follower).read([follower.member], [wish.place], GLANCE)
      const [page] = pages
      if (verdicts[0] !== 'entered' || !page) return verdicts[0] === 'removed' ? 'removed' : 'ended'
      const logsAfter = await findLog(follower, wish)
      if (logsAfter === undefined) return 'no-job'
      welcome(open(subscribe(follower, { ...wish, logsAfter }, page.begin, Date.now())), page)
    } finally {
      joining = joining.filter((one) => one !== follower)
    }
    livelyAt = Date.now()
    soon()
    return undefined
  }

  /** Where the log of the job is followed from; undefined: there is no such job. */
  const findLog = async (follower: Follower, { topics: named, filter, logsAfter }: Wish) => {
    if (!named.includes('logs')) return null
    const job = { orgId: follower.member.orgId, jobId: filter.job_id ?? '', after: logsAfter, limit: 0 }
    const [found] = await readerOf(follower).runAs([follower.member])(followJob(job))
    return found?.newest
  }

  const welcome = (socket: Socket, page: StreamPage): void => {
    const { subscriber } = socket
    const { expiresAt, credit } = subscriber
    const lost = page.lost && resync(subscriber, page.head, page.lost, Date.now())
    const cursor = formatCursor(subscriber.place)
    const expires_at = expiresAt === null ? null : new Date(expiresAt).toISOString()
    socket.send(JSON.stringify({ type: 'hello', cursor, credit, expires_at }))
    if (lost) socket.send(lost)
    socket.save()
  }

  const soon = (): void => {
    wanted = true
    if (!reading) clock.wakeIn(Math.max(0, readAt + REST_MS - Date.now()))
  }

  const wake = async (): Promise<void> => {
    clock.rang()
    if (reading) return
    reading = true
    wanted = false
    let troubled = false
    try {
      await look()
    } catch (error) {
      onError(error)
      troubled = true
    }
    reading = false
    readAt = Date.now()
    const open = sockets()
    for (const socket of open) {
      socket.subscriber.livelyAt = livelyAt
      socket.save()
    }
    if (open.length > 0) clock.wakeIn(troubled ? TROUBLED_MS : pauseMs(open))
  }

  const look = async (): Promise<void> => {
    const now = Date.now()
    for (const socket of sockets()) closeIfExpired(socket, now)
    const open = sockets()
    const [first] = open
    if (!first) return
    const reader = readerOf(first.subscriber)
    await readEvents(open, reader, now)
    const staying = sockets()
    await topics.read(staying, reader, livelyAt)
    for (const socket of staying) pingIfQuiet(socket, now)
  }

  const readEvents = async (open: readonly Socket[], reader: Reader, now: number): Promise<void> => {
    const people = Map.groupBy(open, ({ subscriber }) => identityOf(subscriber))
    const members = [...people.values()].flatMap(([one]) => (one ? [one.subscriber.member] : []))
    const due = open.filter(({ subscriber }) => isDue(subscriber, now))
    const groups = [...Map.groupBy(due, ({ subscriber }) => formatCursor(subscriber.place)).values()]
    const chosen = choose(groups)
    if (groups.length > chosen.length) wanted = true
    const places = chosen.flatMap(([one]) => (one ? [one.subscriber.place] : []))
    const { verdicts, pages } = await reader.read(members, places, LIMITS)
    const refused = new Map([...people.keys()].map((identity, n) => [identity, verdicts[n]]))
    for (const socket of open) closeIfRefused(socket, refused.get(identityOf(socket.subscriber)))
    const staying = new Set(sockets())
    for (const page of pages) {
      const events = tellEvents(page)
      if (page.events.length > 0) livelyAt = Date.now()
      if (page.more) wanted = true
      for (const socket of chosen[page.place] ?? []) {
        if (!staying.has(socket)) continue
        for (const frame of deliver(socket.subscriber, page, events, now)) socket.send(frame)
      }
    }
  }

  /** Where most stand, and of the other places as many as there is room for, in turns. */
  const choose = (groups: readonly Socket[][]): readonly Socket[][] => {
    if (groups.length <= MOST_PLACES) return groups
    const [largest, ...others] = groups.toSorted((a, b) => b.length - a.length)
    turn = (turn + MOST_PLACES - 1) % others.length
    const inTurn = [...others.slice(turn), ...others.slice(0, turn)].slice(0, MOST_PLACES - 1)
    return largest ? [largest, ...inTurn] : inTurn
  }

  const pauseMs = (open: readonly Socket[]): number => {
    const now = Date.now()
    if (wanted) return REST_MS
    const ends = open.map(({ subscriber }) => (subscriber.expiresAt ?? Number.POSITIVE_INFINITY) - now)
    const topicsIn = topics.nextAt(open, livelyAt) - now
    return Math.max(REST_MS, Math.min(paceMs(now - livelyAt), topicsIn, ...ends))
  }

  return {
    connect,
    wake,
    receive: (socket, message) => {
      const frame = readClientFrame(message)
      if (!frame) {
        socket.close(CLOSE.badRequest, BAD_FRAME)
        return
      }
      if (frame.type !== 'credit') return
      const { subscriber } = socket
      const hasWaited = subscriber.starvedAt !== null
      giveCredit(subscriber, frame.n)
      socket.save()
      if (hasWaited) soon()
    },
    nudge: () => {
      const following = sockets().length
      if (following === 0) return 0
      livelyAt = Date.now()
      soon()
      return following
    },
  }
}

const closeIfExpired = (socket: Socket, now: number): void => {
  const { expiresAt } = socket.subscriber
  if (expiresAt !== null && expiresAt <= now) socket.close(CLOSE.ended, 'The token has expired.')
}

const closeIfRefused = (socket: Socket, verdict: StreamVerdict | undefined): void => {
  if (verdict === 'removed') socket.close(CLOSE.removed, 'No longer a member of the organisation.')
  else if (verdict !== 'entered') socket.close(CLOSE.ended, 'The sign-in or the API key has ended.')
}

/** With a cursor, so that who waits for something rare need not look through all that was not for them again. */
const pingIfQuiet = (socket: Socket, now: number): void => {
  const { subscriber } = socket
  if (now - subscriber.pingedAt < PING_MS) return
  subscriber.pingedAt = now
  socket.send(JSON.stringify({ type: 'ping', cursor: formatCursor(subscriber.place) }))
}

import type { Member } from '../../db/queries/scope.ts'
import type { StreamPlace } from '../../db/queries/stream.ts'
import type { StreamFilter } from './filter.ts'

/** What a subscriber may ask for besides events. */
export const TOPIC_NAMES = ['events', 'summary', 'workers', 'logs'] as const
export type TopicName = (typeof TOPIC_NAMES)[number]

/** What is asked for when a socket is opened. */
export type Wish = {
  /** Null: from now. */
  place: StreamPlace | null
  filter: StreamFilter
  topics: TopicName[]
  /** The last line of the job's log that is known; null: from now. */
  logsAfter: string | null
}

/** Whoever follows the stream, in the organisation, and until when their token is good. */
export type Follower = {
  member: Member
  /** A platform admin, to whom the topic `workers` also shows data that belongs to no organisation. */
  isAdmin: boolean
  expiresAt: number | null
}

/** What the object knows of a socket. It is kept with the socket, and so survives hibernation: at most 2 kB. */
export type Subscriber = Follower &
  Omit<Wish, 'place'> & {
    /** Everything before it was sent, or was not wanted. */
    place: StreamPlace
    /** How many more events it takes. */
    credit: number
    /** Since when it has none left. */
    starvedAt: number | null
    /** `resuming` and `slow` are behind: the one came late, the other takes too little. */
    pace: 'live' | 'resuming' | 'slow'
    pingedAt: number
    /** When something last happened in the stream. */
    livelyAt: number
    /** A digest of what was last sent, by kind of frame. */
    sent: Record<string, number>
  }

/** An open socket. */
export type Socket = {
  readonly subscriber: Subscriber
  send(text: string): void
  close(code: number, reason: string): void
  /** Keeps with the socket what has become of its subscriber. */
  save(): void
}

export const CREDIT = 256
/** More is not remembered. */
export const MOST_CREDIT = 10_000

export const subscribe = (
  { member, isAdmin, expiresAt }: Follower,
  wish: Wish,
  place: StreamPlace,
  now: number,
): Subscriber => ({
  ...{ member, isAdmin, expiresAt, place },
  ...{ filter: wish.filter, topics: wish.topics, logsAfter: wish.logsAfter },
  credit: CREDIT,
  starvedAt: null,
  pace: wish.place === null ? 'live' : 'resuming',
  pingedAt: now,
  livelyAt: now,
  sent: {},
})

export const wants = ({ topics }: Subscriber, topic: TopicName): boolean => topics.includes(topic)

/** Those who proved themselves in the same way: they are let in, and refused, together. */
export const identityOf = ({ member }: Pick<Follower, 'member'>): string =>
  [member.userId, member.sessionId, member.keyId].join(' ')

export const giveCredit = (subscriber: Subscriber, n: number): void => {
  subscriber.credit = Math.min(MOST_CREDIT, subscriber.credit + n)
  subscriber.starvedAt = null
}

import type { Reader } from './reader.ts'
import { identityOf, type Socket, type Subscriber, wants } from './subscriber.ts'
import type { Topic, TopicFrame } from './topics.ts'

export type TopicReader = {
  /** Reads what is due for them, and sends each the frames that are new to it. */
  read(sockets: readonly Socket[], reader: Reader, changedAt: number): Promise<void>
  /** When the next of them is due. */
  nextAt(sockets: readonly Socket[], changedAt: number): number
}

export const createTopicReader = (
  topics: readonly Topic[],
  onError: (error: unknown) => void,
): TopicReader => {
  let readAt = new Map<string, number>()

  type Group = { topic: Topic; key: string; members: Socket[] }

  const groupsOf = (sockets: readonly Socket[]): Group[] =>
    topics.flatMap((topic) => {
      const wanting = sockets.filter(
        ({ subscriber }) => wants(subscriber, topic.name) && isAttentive(subscriber),
      )
      return [...Map.groupBy(wanting, ({ subscriber }) => topic.keyOf(subscriber))].map(([key, members]) => ({
        topic,
        key,
        members,
      }))
    })

  const nameOf = ({ topic, key }: Group): string => `${topic.name} ${key}`

  const dueAt = (group: Group, changedAt: number): number => {
    const { topic, members } = group
    const last = readAt.get(nameOf(group))
    if (last === undefined || members.some(({ subscriber }) => subscriber.sent[topic.name] === undefined))
      return 0
    return last + (changedAt > last ? topic.minIntervalMs : topic.idleIntervalMs)
  }

  /** Answers whether there is more to read. */
  const readGroup = async ({ topic, members }: Group, reader: Reader): Promise<boolean> => {
    const [first] = members
    if (!first) return false
    // Also if it fails: they wait for the next read then, and not for none at all.
    for (const { subscriber } of members) subscriber.sent[topic.name] ??= 0
    const people = new Map(members.map(({ subscriber }) => [identityOf(subscriber), subscriber.member]))
    const run = topic.isForAdmin?.(first.subscriber)
      ? reader.runAsAdmin(first.subscriber.member)
      : reader.runAs([...people.values()])
    const news = await topic.read(run, first.subscriber)
    for (const socket of members) {
      if (news.logsAfter !== undefined) socket.subscriber.logsAfter = news.logsAfter
      for (const frame of news.frames) sendIfNew(socket, frame, news.gist)
    }
    return news.more ?? false
  }

  return {
    read: async (sockets, reader, changedAt) => {
      const now = Date.now()
      const groups = groupsOf(sockets)
      const due = groups.filter((group) => dueAt(group, changedAt) <= now)
      const others = groups.filter((group) => !due.includes(group))
      readAt = new Map(others.map((group) => [nameOf(group), readAt.get(nameOf(group)) ?? 0]))
      const unfinished = await Promise.all(due.map((group) => readGroup(group, reader).catch(onError)))
      for (const [n, { topic, members }] of due.entries()) {
        // What has not been read is due at once.
        if (unfinished[n] === true) continue
        // By the names that they have now: of a log they change with each line.
        for (const { subscriber } of members) readAt.set(`${topic.name} ${topic.keyOf(subscriber)}`, now)
      }
    },
    nextAt: (sockets, changedAt) =>
      Math.min(...groupsOf(sockets).map((group) => dueAt(group, changedAt)), Number.POSITIVE_INFINITY),
  }
}

const sendIfNew = (socket: Socket, frame: TopicFrame, gist: string | undefined): void => {
  const { sent } = socket.subscriber
  const text = JSON.stringify(frame)
  const digest = digestOf(gist ?? text)
  if (sent[frame.type] === digest) return
  sent[frame.type] = digest
  socket.send(text)
}

/** Who takes no events takes nothing else either. What they miss is replaced by the next. */
const isAttentive = (subscriber: Subscriber): boolean => !wants(subscriber, 'events') || subscriber.credit > 0

/** FNV-1a: 32 bits are kept with the socket, instead of the whole text. */
const digestOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let n = 0; n < text.length; n++) hash = Math.imul(hash ^ text.charCodeAt(n), 0x01000193)
  return hash
}

/** What the benchmark needs of a queue. Each contender has a file that says it, and one that is its worker. */
export type Contender = {
  readonly key: string
  readonly name: string
  /** The configuration in a few words, for the report. */
  readonly about: string
  readonly store: 'postgres' | 'redis'
  /** Which part of the jobs of a drain it gets: a slow one is measured with fewer, or the run takes hours. */
  readonly share: number
  readonly worker: { readonly file: URL; readonly env?: Readonly<Record<string, string>> }
  /** Installs the queue in an empty database. */
  prepare(url: string): Promise<void>
  /** With exactly as many connections as it may use. */
  open(url: string, connections: number): Promise<QueueClient>
  /** Puts finished jobs there as a year of work would have; absent if the queue deletes them. */
  seedFinished?(url: string, count: number): Promise<void>
}

export type QueueClient = {
  /** One no-op job, committed when it resolves. */
  add(): Promise<unknown>
  /** Many, in one call of the library. */
  addMany(count: number): Promise<unknown>
  /** Jobs that are neither completed nor failed. */
  unfinished(): Promise<number>
  close(): Promise<void>
}

/** The databases of one kind of server, a new one for each measurement. */
export type Store = {
  create(): Promise<string>
  /** A copy of a database, ready faster than a second one could be filled. */
  copy(url: string): Promise<string>
  drop(url: string): Promise<void>
  /** Brings a filled database to rest: whatever filling it left to do is done before the clock runs. */
  settle(url: string): Promise<void>
  /** All that the server has used so far, in its own processes. */
  usage(url: string): Promise<Usage>
  stop(): Promise<void>
}

export type Usage = { cpuMs: number | undefined; walBytes: number | undefined }

/** All of them get this one; a queue that stores nothing of a job would not be a queue. */
export const PAYLOAD = { n: 1 }
export const JOB_TYPE = 'noop'

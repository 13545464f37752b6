import { enter, type Member } from '../../db/queries/scope.ts'
import {
  enterStream,
  readStream,
  type StreamLimits,
  type StreamPage,
  type StreamPlace,
  type StreamVerdict,
} from '../../db/queries/stream.ts'
import type { Query, Run } from '../../db/query.ts'
import type { Database } from '../database.ts'
import { NotEntered } from '../database-errors.ts'

/**
 * Reads as those who follow the stream: each transaction begins with the database's look at who of them still may. One
 * round trip over HTTP, and no connection in between.
 */
export type Reader = {
  read(
    members: readonly Member[],
    places: readonly (StreamPlace | null)[],
    limits: StreamLimits,
  ): Promise<{ verdicts: StreamVerdict[]; pages: StreamPage[] }>
  /** Runs statements only if all of them still may. */
  runAs(members: readonly Member[]): Run
  /** Runs statements only if the member is still a platform admin. */
  runAsAdmin(member: Member): Run
}

export const createReader = (database: Database, orgId: string): Reader => ({
  read: async (members, places, limits) => {
    const [[entry], pages] = await database.transaction<[{ verdicts: StreamVerdict[] }, StreamPage]>([
      enterStream(orgId, members),
      readStream(orgId, places, limits),
    ])
    return { verdicts: entry?.verdicts ?? [], pages }
  },
  runAs:
    (members) =>
    async <Row>(query: Query<Row>) => {
      const [[entry], rows] = await database.transaction<[{ verdicts: StreamVerdict[] }, Row]>([
        enterStream(orgId, members),
        query,
      ])
      // The next read closes whoever it is. Until then nobody gets anything.
      if (!entry?.verdicts.every((verdict) => verdict === 'entered')) throw new NotEntered('SQ401')
      return rows
    },
  runAsAdmin: (member) => database.after(enter(member, { leastRole: 'admin' })),
})

import pg from 'pg'
import type { Run } from '../db/query.ts'

export type DatabaseWatch = {
  /** The same statements, with an eye on whether they are answered. */
  watch(run: Run): Run
  /** The database has answered lately. */
  isUp(): boolean
}

/** Three heartbeats: whoever asks less often than those must not ask here. */
export const SILENT_MS = 6_000

/**
 * Whether the database can be reached, by what is asked of it anyway. That it refuses a statement is an answer too: what
 * counts is that there is someone to refuse.
 */
export const createDatabaseWatch = (now: () => number): DatabaseWatch => {
  let answeredAtMs = Number.NEGATIVE_INFINITY
  return {
    watch: (run) => async (query) => {
      try {
        const rows = await run(query)
        answeredAtMs = now()
        return rows
      } catch (error) {
        if (isAnswer(error)) answeredAtMs = now()
        throw error
      }
    },
    isUp: () => now() - answeredAtMs < SILENT_MS,
  }
}

/** Not one of a server that ends the session, or does not let anybody in: it starts, stops, or is full. */
const isAnswer = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !/^(08|53|57P|28)/.test(error.code ?? '08')

import { align } from '../queue/tables.ts'
import { BEFORE, SUBJECT } from './servers.ts'
import type { Measured } from './steps.ts'
import type { StepResult } from './tables.ts'

export type Target = { what: string; measured: number; limit: string; holds: boolean }

const PEERS = ['graphile-worker', 'pg-boss']

/** Ratios within one run: to the better Postgres peer, and to the earlier commit. */
export const checkTargets = (short: readonly StepResult[], long: readonly StepResult[]): Target[] => {
  const find = (results: readonly StepResult[], name: string, inFlight: number) =>
    results.find((result) => result.name === name && result.inFlight === inFlight)?.servers ?? {}

  const speed = (name: string, inFlight: number): number => {
    const servers = find(short, name, inFlight)
    return speedOf(servers[SUBJECT]) / Math.max(...PEERS.map((peer) => speedOf(servers[peer])))
  }
  const time = (name: string): number => {
    const servers = find(short, name, 1)
    return timeOf(servers[SUBJECT]) / Math.min(...PEERS.map((peer) => timeOf(servers[peer])))
  }
  const cpu = (results: readonly StepResult[], name: string): number => {
    const servers = find(results, name, 1)
    return databaseOf(servers[SUBJECT]) / databaseOf(servers[BEFORE])
  }
  return [
    atLeast('POST /jobs, 50 in flight: requests/s, × better peer', speed('POST /jobs', 50), 1.2),
    atLeast('POST /jobs, 10 in flight: requests/s, × better peer', speed('POST /jobs', 10), 0.8),
    atMost('POST /jobs, 1 in flight: p50, × better peer', time('POST /jobs'), 2),
    atMost('GET /jobs/{id}, 1 in flight: p50, × better peer', time('GET /jobs/{id}'), 4),
    atLeast('GET /jobs/{id}, 10 in flight: requests/s, × better peer', speed('GET /jobs/{id}', 10), 0.17),
    atMost('GET /jobs?limit=1: CPU of Postgres, × before', cpu(short, 'GET /jobs?limit=1'), 0.4),
    atMost('GET /jobs/{id}: CPU of Postgres, × before', cpu(short, 'GET /jobs/{id}'), 0.12),
    atMost('GET /jobs?limit=1, long queue: CPU of Postgres, × before', cpu(long, 'GET /jobs?limit=1'), 0.4),
    atMost('GET /jobs/{id}, long queue: CPU of Postgres, × before', cpu(long, 'GET /jobs/{id}'), 0.12),
  ]
}

export const printTargets = (targets: readonly Target[]): string =>
  align(
    targets.map(({ what, measured, limit, holds }) => [
      Number.isNaN(measured) ? 'not measured' : holds ? 'holds' : 'MISSED',
      what,
      measured.toFixed(2),
      limit,
    ]),
  )

const speedOf = (measured: Measured | undefined): number => measured?.perSecond ?? Number.NaN
const timeOf = (measured: Measured | undefined): number => measured?.p50Ms ?? Number.NaN
const databaseOf = (measured: Measured | undefined): number => measured?.cpuMs.database ?? Number.NaN

const atLeast = (what: string, measured: number, limit: number): Target => ({
  what,
  measured,
  limit: `at least ${limit}`,
  holds: measured >= limit,
})
const atMost = (what: string, measured: number, limit: number): Target => ({
  what,
  measured,
  limit: `at most ${limit}`,
  holds: measured <= limit,
})

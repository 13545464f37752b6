import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { useWasmBackend } from '../../../worker-runtime/learning/wasm-backend.ts'
import { startReaper } from '../../../worker-runtime/local/reaper-link.ts'
import { createTestFolder } from '../../support/folder.ts'
import { type Arena, createArena } from '../queue/arena.ts'
import { startPostgresStore } from '../queue/postgres-store.ts'
import type { BenchOptions, BenchReport } from '../report.ts'
import { drainRows } from './drains.ts'
import { attackRows, realPeerRows, thousandTenantsRow } from './real.ts'
import { printRows } from './rows.ts'
import { simulatedRows } from './simulated.ts'
import { traceRows } from './traces.ts'

const ATTACK_ROUNDS = 3
/** Long enough that the first claims, made before any runtime is known, weigh little. */
const DRAIN = { jobs: 400_000, rounds: 5 }
const QUICK_DRAIN = { jobs: 4_000, rounds: 1 }

/** How the workers' time is shared between organisations: simulated, on real workers, and what it costs. */
export const benchFairness = async (options: BenchOptions): Promise<BenchReport> => {
  const { quick, say, before, traces } = options
  await useWasmBackend()
  say('One tenant with 34 s jobs beside three with 1 s jobs, simulated…')
  const simulated = simulatedRows()
  const traced = quick ? [] : await traceRows(traces, say)
  const real = await withArena(async (arena) => {
    const measured = { quick, say, rounds: quick ? 1 : ATTACK_ROUNDS }
    const peer = await realPeerRows(arena, measured)
    const attacks = await attackRows(arena, measured)
    const thousand = await thousandTenantsRow(arena, measured)
    const drains = await drainRows(arena, { ...(quick ? QUICK_DRAIN : DRAIN), before, say })
    return { rows: [...peer, ...attacks, thousand, ...drains.rows], drains: drains.rounds }
  })
  const rows = [...simulated, ...traced, ...real.rows]
  return {
    data: { cores: availableParallelism(), rows, drains: real.drains },
    text: printRows(rows),
  }
}

const withArena = async <T>(measure: (arena: Arena) => Promise<T>): Promise<T> => {
  const folder = await createTestFolder()
  // Whatever ends this process, its server ends too.
  const reaper = startReaper(() => {})
  const postgres = await startPostgresStore(folder, reaper)
  try {
    return await measure(createArena({ postgres }))
  } finally {
    await postgres.stop()
    reaper.release()
    await rm(folder, { recursive: true, force: true })
  }
}

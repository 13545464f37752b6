import { spawn, spawnSync } from 'node:child_process'
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../../worker-runtime/local/ports.ts'
import { type ProcessGroup, trackGroup } from '../../../worker-runtime/local/process-group.ts'
import type { Reaper } from '../../../worker-runtime/local/reaper-link.ts'
import type { Store } from './contender.ts'
import { treeCpuMs } from './process-cpu.ts'

export const isRedisInstalled = (): boolean =>
  spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0

/** With everysec, the log is complete a second after the last write. */
const FSYNC_MS = 1_500

/** A server for each database: it starts in a moment, and is as empty as a new one. */
export const startRedisStore = (folder: string, reaper: Reaper): Store => {
  const servers = new Map<string, ProcessGroup>()

  const dirOf = (port: number | string): string => join(folder, `redis-${port}`)

  const create = async (from?: string): Promise<string> => {
    const port = await freePort()
    const dir = dirOf(port)
    if (from) await cp(dirOf(new URL(from).port), dir, { recursive: true })
    else await mkdir(dir, { recursive: true })
    const server = await startRedis(port, dir)
    reaper.guard({ pid: server.pid, signal: 'SIGTERM', graceMs: 2_000 })
    const url = `redis://127.0.0.1:${port}`
    servers.set(url, server)
    return url
  }

  const drop = async (url: string): Promise<void> => {
    await servers.get(url)?.stop()
    servers.delete(url)
    await rm(dirOf(new URL(url).port), { recursive: true, force: true })
  }

  return {
    create: () => create(),
    // Its log is all of a database: a server that starts on a copy of it has the same jobs.
    copy: create,
    drop,
    settle: () => delay(FSYNC_MS),
    usage: async (url) => {
      const pid = servers.get(url)?.pid
      return { cpuMs: pid === undefined ? undefined : treeCpuMs(pid), walBytes: undefined }
    },
    stop: async () => {
      await Promise.all([...servers.keys()].map(drop))
    },
  }
}

/**
 * everysec is what BullMQ's documentation asks for. It is less than the contenders on Postgres give: up to a
 * second of acknowledged jobs is lost with the power. `always` would cost BullMQ most of its speed.
 */
const startRedis = async (port: number, dir: string): Promise<ProcessGroup> => {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '']
  const child = spawn('redis-server', [...args, '--appendonly', 'yes', '--appendfsync', 'everysec'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const server = trackGroup(child, { signal: 'SIGTERM', graceMs: 5_000 })
  const ready = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve()
    })
  })
  const ended = await Promise.race([ready, server.exited])
  if (ended) throw new Error(`redis-server ${ended}`)
  return server
}

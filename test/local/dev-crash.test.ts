import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type RunningProcess, startRunner, untilAllGone, withHome } from '../support/local-runner.ts'

test('a killed runner leaves no process behind, and the next start cleans up after it', () =>
  withHome(async (home) => {
    const victim = await startRunner(home)
    const processes = victim.processes()
    process.kill(victim.pid, 'SIGKILL')
    await victim.exited
    await untilAllGone(processes)
    assert.ok(existsSync(join(home, 'dev.lock')), 'the lock of the killed run is still there')
    const next = await startRunner(home)
    process.kill(next.pid, 'SIGTERM')
    assert.equal(await next.exited, 0)
    assert.equal(existsSync(join(home, 'dev.lock')), false)
  }))

const parts: [string, (process: RunningProcess) => boolean][] = [
  ['the worker', ({ command }) => command.includes('main.ts')],
  ['wrangler', ({ command }) => command.includes('wrangler-dist')],
  ['workerd', ({ command }) => command.includes('workerd serve')],
  ['PostgreSQL', ({ command }) => command.includes('postgres -D')],
  ['esbuild', ({ command }) => command.includes('esbuild --service')],
  ['the reaper', ({ command }) => command.includes('reaper.ts')],
]

test('SIGTERM to any part stops everything and says which part died', () =>
  withHome(async (home) => {
    for (const [part, matches] of parts) {
      const runner = await startRunner(home)
      const processes = runner.processes()
      const victim = processes.find(matches)
      assert.ok(victim, part)
      process.kill(victim.pid, 'SIGTERM')
      assert.equal(await runner.exited, 1, `${part}: ${runner.output()}`)
      assert.match(runner.output(), /Stopping everything\./)
      await untilAllGone(processes)
    }
  }))

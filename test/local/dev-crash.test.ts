import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type RunningProcess, startRunner, untilAllGone, withHome } from '../support/local-runner.ts'

const parts: [string, (process: RunningProcess) => boolean][] = [
  ['the worker', ({ command }) => command.includes('main.ts')],
  ['wrangler', ({ command }) => command.includes('wrangler-dist')],
  ['workerd', ({ command }) => command.includes('workerd serve')],
  ['PostgreSQL', ({ command }) => command.includes('postgres -D')],
  ['esbuild', ({ command }) => command.includes('esbuild --service')],
  ['the reaper', ({ command }) => command.includes('reaper.ts')],
]

test('whatever part ends, all of it ends, and the next start cleans up after it', (t) =>
  withHome(async (home) => {
    await t.test('a killed runner leaves no process behind', async () => {
      const victim = await startRunner(home)
      const processes = victim.processes()
      process.kill(victim.pid, 'SIGKILL')
      await victim.exited
      await untilAllGone(processes)
      assert.ok(existsSync(join(home, 'dev.lock')), 'the lock of the killed run is still there')
    })
    for (const [part, matches] of parts) {
      await t.test(`SIGTERM to ${part} stops everything and says which part died`, async () => {
        const runner = await startRunner(home)
        const processes = runner.processes()
        const victim = processes.find(matches)
        assert.ok(victim, part)
        process.kill(victim.pid, 'SIGTERM')
        assert.equal(await runner.exited, 1, `${part}: ${runner.output()}`)
        assert.match(runner.output(), /Stopping everything\./)
        await untilAllGone(processes)
        assert.equal(existsSync(join(home, 'dev.lock')), false)
      })
    }
  }))

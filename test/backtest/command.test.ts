import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PREDICTORS } from '../../worker-runtime/backtest/accuracy.ts'
import { POLICIES } from '../../worker-runtime/backtest/policies.ts'
import type { Report } from '../../worker-runtime/backtest/report.ts'
import { createTestFolder } from '../support/folder.ts'
import { syntheticHistory } from './synthetic-history.ts'

let folder: string
before(async () => {
  folder = await createTestFolder()
})
after(() => rm(folder, { recursive: true, force: true }))

const backtest = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
  const child = spawn(process.execPath, ['worker-runtime/backtest/main.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: Number(code), out, err }
}

const write = async (name: string, content: string | Buffer): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, content)
  return file
}

test('a gzipped history is answered as one JSON object', async () => {
  const file = await write('small.csv.gz', gzipSync(syntheticHistory(300)))
  const { code, out, err } = await backtest(file, '--json', '--workers', '1', '--slots', '3', '--skip', '50')
  assert.equal(code, 0, err)
  const report = JSON.parse(out) as Report
  assert.deepEqual(Object.keys(report), ['trace', 'jobs', 'skipped', 'seconds', 'predictors', 'policies'])
  assert.deepEqual([report.trace, report.jobs, report.skipped], ['small', 300, 50])
  assert.deepEqual(Object.keys(report.predictors), [...PREDICTORS])
  assert.deepEqual(Object.keys(report.policies), [...POLICIES])
  const { fifo, oracle, smartqueue } = report.policies
  assert.deepEqual([fifo.gain_share, oracle.gain_share], [0, 1])
  assert.ok(smartqueue.gain_share > 0.3, `of the gain it has ${smartqueue.gain_share}`)
  const errors = report.predictors
  assert.ok(errors.smartqueue.mean_abs_log_error < 0.5 * errors['global-mean'].mean_abs_log_error)
  for (const score of Object.values(errors)) assert.ok(Object.values(score).every(Number.isFinite))
})

test('without --json people get two tables', async () => {
  const file = await write('table.csv', syntheticHistory(80))
  const { out } = await backtest(file, '--burst')
  assert.match(out, /table: 80 jobs/)
  assert.match(out, /predictor .*mean \|ln error\|/)
  assert.match(out, /policy .*of the gain/)
  assert.match(out, /with a burst/)
})

test('a file that is none, or not whole, is refused with what is wrong', async () => {
  const missing = await backtest(join(folder, 'nowhere.csv'))
  assert.equal(missing.code, 1)
  assert.match(missing.err, /nowhere\.csv cannot be read/)
  const headless = await backtest(await write('headless.csv', '1,2,3\n4,5,6\n'))
  assert.match(headless.err, /has no column submit_s, runtime_ms, type/)
  const bad = await backtest(await write('bad.csv', 'submit_s,runtime_ms,type\n0,10,a\n1,soon,a\n'))
  assert.match(bad.err, /bad\.csv, line 3: runtime_ms is "soon"/)
  const load = await backtest(await write('ok.csv', syntheticHistory(10)), '--load', 'full')
  assert.match(load.err, /--load must be a number/)
})

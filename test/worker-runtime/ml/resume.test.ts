import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { toCheckpointJson } from '../../../worker-runtime/checkpoint-json.ts'
import { MAX_HIDDEN } from '../../../worker-runtime/handlers/ml/schema.ts'
import { inline, type MlInput, noisySeason, runMl, slowDown, type Told } from '../../support/ml.ts'

const PAYLOAD: MlInput = { series: inline(noisySeason(120)), horizon: 2, epochs: 6, hidden: 6 }

type Kept = { stage: string; train_losses: number[]; validation_losses: number[]; weights: string }

/** The checkpoint that is kept when `isLast` says so; then the job is interrupted. */
const interrupt = async (
  t: TestContext,
  isLast: (kept: Kept) => boolean,
  payload = PAYLOAD,
): Promise<Kept> => {
  slowDown(t, 3_000)
  const controller = new AbortController()
  const reason = new Error('interrupted')
  let last: Kept | undefined
  const checkpoint = async (state: unknown) => {
    last = JSON.parse(toCheckpointJson(state)) as Kept
    if (isLast(last)) controller.abort(reason)
  }
  const attempt = runMl(payload, { checkpoint, signal: controller.signal })
  await assert.rejects(attempt, (error) => error === reason)
  t.mock.restoreAll()
  return last as Kept
}

const comparable = async (attempt: ReturnType<typeof runMl>) => {
  const { told: _told, duration_ms: _duration, ...result } = await attempt
  return result
}

const resume = (lastCheckpoint: unknown, payload = PAYLOAD, told?: Told) =>
  runMl(payload, { lastCheckpoint, attempt: 2 }, told)

describe('an ml job that was interrupted', () => {
  let uninterrupted: Awaited<ReturnType<typeof comparable>>
  before(async () => {
    uninterrupted = await comparable(runMl(PAYLOAD))
  })

  for (const epoch of [1, 4]) {
    it(`after epoch ${epoch} goes on from there, and ends as if it had not been`, async (t) => {
      const kept = await interrupt(t, ({ train_losses }) => train_losses.length === epoch)
      assert.deepEqual([kept.stage, kept.train_losses.length], ['fit', epoch])
      const resumed = await resume(kept)
      assert.match(resumed.told.notes[0] as string, new RegExp(`^epoch ${epoch + 1} of 6,`))
      assert.match(resumed.told.log[1] as string, new RegExp(`^Goes on after epoch ${epoch} of an earlier`))
      const { told: _told, duration_ms: _duration, ...result } = resumed
      assert.deepEqual(result, uninterrupted)
    })
  }

  it('over all values goes on there too', async (t) => {
    const kept = await interrupt(t, ({ stage }) => stage === 'finish')
    const resumed = await comparable(resume(kept))
    assert.equal(resumed.source, 'lstm', 'or there would be nothing to finish')
    assert.deepEqual(resumed, uninterrupted)
  })

  it('begins anew if the values, a setting or the release are others, or the checkpoint is damaged', async (t) => {
    const kept = await interrupt(t, ({ train_losses }) => train_losses.length === 2)
    const short = { ...PAYLOAD, epochs: 1 }
    const strangers: [unknown, MlInput][] = [
      [kept, { ...short, series: inline(noisySeason(120, 2)) }],
      [kept, { ...short, seed: 2 }],
      [{ ...kept, weights: `${kept.weights.slice(0, 100)}AAAA${kept.weights.slice(104)}` }, PAYLOAD],
      [{ rows: 12 }, short],
      ['something', short],
    ]
    for (const [checkpoint, payload] of strangers) {
      const { told } = await resume(checkpoint, payload)
      assert.match(told.notes[0] as string, /^epoch 1 of /)
      assert.ok(told.log.some((line) => line.endsWith('begins anew')))
    }
  })
})

describe('checkpoints', () => {
  it('of the largest network after the longest training fit', async (t) => {
    const payload = { ...PAYLOAD, hidden: MAX_HIDDEN }
    const kept = await interrupt(t, ({ train_losses }) => train_losses.length === 1, payload)
    const losses = Array.from({ length: 1_001 }, (_, n) => Number((0.1 + n / 12_345).toPrecision(6)))
    toCheckpointJson({ ...kept, train_losses: losses, validation_losses: losses })
  })

  it('are not made more often than every two seconds, and training goes on without', async (t) => {
    const { told } = await runMl({ ...PAYLOAD, epochs: 2 })
    assert.deepEqual(told.checkpoints, [])
    slowDown(t, 3_000)
    const checkpoint = () => Promise.reject(new Error('the database is away'))
    const result = await runMl({ ...PAYLOAD, epochs: 2 }, { checkpoint })
    assert.equal(result.epochs_run, 2)
    assert.match(result.told.log.join('\n'), /The checkpoint could not be stored: the database is away/)
  })
})

it('a cancelled ml job stops between two steps', async () => {
  const controller = new AbortController()
  const reason = new Error('cancelled')
  let cancelledAt = 0
  const progress = () => {
    if (cancelledAt > 0) return
    cancelledAt = performance.now()
    setTimeout(() => controller.abort(reason), 1)
  }
  const attempt = runMl(
    { series: inline(noisySeason(500)), horizon: 12, season: 12, hidden: MAX_HIDDEN, epochs: 1_000 },
    { progress, signal: controller.signal },
  )
  await assert.rejects(attempt, (error) => error === reason)
  assert.ok(performance.now() - cancelledAt < 500, `${performance.now() - cancelledAt} ms`)
})

import { execFile } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { gzipBytes, THE_WORKER, withBundle } from '../../support/bundle.ts'
import { type BenchOptions, type BenchReport, percentile } from '../report.ts'
import { TRAINING, timeBatch, timeTraining } from './train.ts'

const run = promisify(execFile)

const SIZES = { predictions: 20_000, batches: 100, trainingSteps: 200, rounds: 3 }
const QUICK_SIZES = { predictions: 1_000, batches: 10, trainingSteps: 10, rounds: 2 }

const ROWS = 1_000

/** Rounds are compared by their medians: a neighbour's burst is in one of them, and not in the answer. */
export const benchModel = async ({ say, quick }: BenchOptions): Promise<BenchReport> => {
  const sizes = quick ? QUICK_SIZES : SIZES
  say('Bundling the Worker, and one that only predicts…')
  const worker = await withBundle(THE_WORKER, gzipKb)
  const edge = await withBundle(EDGE_WORKER, async (file) => {
    say(`${sizes.predictions} predictions on the backend of the edge, a few times…`)
    const { alone, together } = await timeEdge(file, sizes.predictions)
    return { us: round(median(alone)), togetherUs: round(median(together)), kb: await gzipKb(file) }
  })
  say(`${sizes.batches} batches of ${ROWS} on WASM, a few times…`)
  const batchMs = round(median(await timeBatch(ROWS, sizes.batches, sizes.rounds)))
  say(`${sizes.trainingSteps} training steps, here and with PyTorch on one thread, in turn…`)
  const { trainingMs, pytorch } = await timeInTurn(sizes.trainingSteps, sizes.rounds)
  const ratio = pytorch && round(pytorch.ms / trainingMs)
  const data = {
    prediction_cpu_us: edge.us,
    prediction_of_1000_cpu_us: edge.togetherUs,
    batch_of_1000_ms: batchMs,
    training_step_ms: trainingMs,
    pytorch: pytorch ?? null,
    times_as_fast_as_pytorch: ratio ?? null,
    worker_gzip_kb: worker,
    predictor_gzip_kb: edge.kb,
  }
  const { size, steps, hidden } = TRAINING
  const text = [
    line('one prediction, edge', `${edge.us} µs of CPU; ${edge.togetherUs} µs each of ${ROWS} at once`),
    line(`network ${ROWS} times, WASM`, `${batchMs} ms of CPU`),
    line(`training step ${size}×${steps}×${hidden}`, `${trainingMs} ms of CPU`),
    line(
      'the same, PyTorch',
      pytorch ? `${pytorch.ms} ms of CPU (${pytorch.version}); SmartQueue is ${ratio} × as fast` : NO_PYTORCH,
    ),
    line('Worker, gzip', `${worker} kB; what predicts alone ${edge.kb} kB`),
  ].join('\n')
  return { data, text }
}

const NO_PYTORCH =
  'skipped: no python3 here can import torch (Debian: apt-get install python3-torch libopenblas0)'

const EDGE_WORKER = { config: 'test/bench/model/edge-worker.toml', main: 'edge-worker.js' }

const gzipKb = async (file: string): Promise<number> => round((await gzipBytes(file)) / 1000)

const timeEdge = async (bundle: string, count: number): Promise<Record<'alone' | 'together', number[]>> => {
  const script = fileURLToPath(new URL('edge-predictions.ts', import.meta.url))
  const { stdout } = await run(process.execPath, [script, pathToFileURL(bundle).href, String(count)])
  return JSON.parse(stdout) as Record<'alone' | 'together', number[]>
}

type Pytorch = { version: string; ms: number }

/** A round here, a round there: what else the machine does is in both. */
const timeInTurn = async (steps: number, rounds: number) => {
  const python = await findPython()
  const ours: number[] = []
  const theirs: Pytorch[] = []
  for (let n = 0; n < rounds; n++) {
    ours.push(...(await timeTraining(steps, 1)))
    if (python) theirs.push(await timePytorch(python, steps))
  }
  const [{ version } = { version: '' }] = theirs
  const pytorch = python && { version, ms: round(median(theirs.map(({ ms }) => ms))) }
  return { trainingMs: round(median(ours)), pytorch }
}

/** The first that has torch: the PATH's, or the system's. */
const findPython = async (): Promise<string | undefined> => {
  for (const python of ['python3', '/usr/bin/python3']) {
    const hasTorch = await run(python, ['-c', 'import torch']).then(
      () => true,
      () => false,
    )
    if (hasTorch) return python
  }
  return undefined
}

const timePytorch = async (python: string, steps: number): Promise<Pytorch> => {
  const script = fileURLToPath(new URL('pytorch.py', import.meta.url))
  const env = { ...process.env, OMP_NUM_THREADS: '1', OPENBLAS_NUM_THREADS: '1' }
  const { stdout } = await run(python, [script, String(steps)], { env })
  return JSON.parse(stdout) as Pytorch
}

const median = (samples: readonly number[]): number => percentile(samples, 0.5)

const line = (what: string, value: string): string => `${what.padEnd(26)}${value}`

const round = (value: number): number => Math.round(value * 100) / 100

import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../../worker-runtime/command.ts'
import { benchAnalytics } from './analytics.ts'
import { benchApi } from './api/bench.ts'
import { benchAuth } from './auth.ts'
import { benchAutoscale } from './autoscale/bench.ts'
import { benchDashboard } from './dashboard.ts'
import { benchEta } from './eta/bench.ts'
import { benchEtl } from './etl.ts'
import { benchFairness } from './fairness/bench.ts'
import { benchForecast } from './forecast/bench.ts'
import { benchModel } from './model/bench.ts'
import { benchPickup } from './pickup.ts'
import { benchQueue } from './queue/bench.ts'
import type { Bench } from './report.ts'
import { benchStream } from './stream.ts'

const BENCHES: Record<string, Bench> = {
  pickup: benchPickup,
  auth: benchAuth,
  model: benchModel,
  eta: benchEta,
  etl: benchEtl,
  forecast: benchForecast,
  analytics: benchAnalytics,
  autoscale: benchAutoscale,
  stream: benchStream,
  dashboard: benchDashboard,
  queue: benchQueue,
  fairness: benchFairness,
  api: benchApi,
}

const RESULTS = 'test/bench/results.json'
const TRACES = '../shared/traces'

const HELP = `Usage: npm run bench [-- NAME…] [-- --quick] [-- --json] [-- --out FILE]

  pickup   submit → start on an idle local system, 300 submissions through the HTTP API; half a minute
  auth     the verification of a token, a login, and what a token adds to a request; a quarter of a minute
  model    a prediction, a training step beside PyTorch's where it is installed, and the size of the Worker; half a minute
  eta      how well promised starts and ends are kept, over a mixed workload in waves, and of three tenants that compete; eight minutes
  etl      a million rows of CSV through etl jobs: rows a second, and the memory of the worker; a minute
  forecast  the load forecast beside simple ones, on made-up daily patterns and on traces where there are some; two minutes
  analytics  the routes of /analytics with a million finished jobs, and what keeps them; two minutes
  autoscale  waits and pod-hours when pods are scaled by predicted work, by count, and not at all: simulated; a quarter of a minute
  stream   how long after its commit an event is seen, in a page of a real browser and in Node; a minute and a half
  dashboard  how responsive the list of jobs stays, with 10,000 jobs and 200 events a second; two minutes
  queue    drain, enqueue, pickup and costs, beside graphile-worker, pg-boss and BullMQ
           (npm run bench:peers installs them, redis-server is taken from the PATH); half an hour
  fairness  how the workers' time is shared between organisations: simulated, on histories, on real workers, and what
           shares cost a drain; twenty minutes
  api      the HTTP API on plain workerd, compared with Fastify on graphile-worker, pg-boss and BullMQ (npm run bench:peers
           installs them), at 1, 10 and 50 requests in flight; twenty minutes

  --quick     small sizes, to see that it runs; the numbers say little
  --json      print one object, {"<name>": {…}}, and nothing else
  --out FILE  where that object is written: ${RESULTS} unless said otherwise
  --traces FOLDER  where forecast and fairness find histories of other systems: ${TRACES} unless said otherwise
  --steady SECONDS --rate N  for api: submit N mixed jobs a second (16) for this many seconds instead, and print latencies,
                   errors and the memory of each process
  --before FOLDER  for queue, fairness and api: a checkout of an earlier commit, with its node_modules, measured in the same rounds
  --help      print this

Without a name all of them run. Run them on an otherwise idle machine.`

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      out: { type: 'string', default: RESULTS },
      traces: { type: 'string', default: TRACES },
      before: { type: 'string' },
      steady: { type: 'string' },
      rate: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const { quick, json, out, traces, before } = values
  const steady = parseSteady(values, positionals)
  const say = (line: string): void => {
    if (!json) console.error(line)
  }
  const results: Record<string, object> = {}
  for (const [name, bench] of choose(positionals)) {
    const { data, text } = await bench({ say, quick, traces, before, steady })
    results[name] = data
    if (!json) console.log(`\n${text}`)
  }
  if (json) console.log(JSON.stringify(results))
  await writeFile(out, `${JSON.stringify(results, undefined, 2)}\n`)
  say(`All numbers, as JSON: ${out}`)
  return 0
}

const parseSteady = (
  { steady: seconds, rate }: { steady?: string | undefined; rate?: string | undefined },
  names: readonly string[],
): { seconds: number; rate: number } | undefined => {
  if (seconds === undefined && rate === undefined) return undefined
  if (names.join() !== 'api' || seconds === undefined) {
    throw new UsageError('--steady and --rate go with api: npm run bench -- api --steady 60 --rate 16')
  }
  const steady = { seconds: Number(seconds), rate: Number(rate ?? 16) }
  if (steady.seconds > 0 && steady.rate > 0) return steady
  throw new UsageError('--steady and --rate must be positive numbers, for example --steady 60 --rate 16')
}

/** Before anything runs: a mistyped name after a quarter of an hour would be a pity. */
const choose = (names: readonly string[]): [string, Bench][] => {
  if (names.length === 0) return Object.entries(BENCHES)
  return names.map((name) => {
    const bench = BENCHES[name]
    if (bench) return [name, bench]
    throw new UsageError(`There is no benchmark "${name}". There are: ${Object.keys(BENCHES).join(', ')}.`)
  })
}

runCommand('The benchmark failed', main)

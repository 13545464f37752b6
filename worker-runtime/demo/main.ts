import { parseArgs } from 'node:util'
import { numberOf, runCommand, UsageError, wholeNumberOf } from '../command.ts'
import { type Config, parseConfig } from '../config.ts'
import { describeError } from '../describe-error.ts'
import { readDemoPort } from '../local/home.ts'
import { freePort } from '../local/ports.ts'
import { reach, Unreachable } from './api.ts'
import { createProgress } from './progress.ts'
import { renderReport } from './report.ts'
import { runDemo } from './run.ts'

const HELP = `Usage: npm run demo [-- options]

Submits a mixed workload of three tenants to the running \`npm run dev\`, over its API, and shows how it is learned.

  --url URL      where SmartQueue listens, on this machine (http://127.0.0.1:PORT, with PORT as of npm run dev)
  --seconds N    how long, 3 to 3600 (120)
  --rate N       jobs a second on average, 1 to 200 (36: ten slots are busy, and not too busy)
  --seed N       decides what is submitted when (1)
  --port N       where the server listens that the jobs call (the one that npm run dev lets them call)
  --json         print one object at the end and nothing else
  --help         print this

Ctrl-C ends it with what there is by then.`

const SAME_SIGNAL_MS = 300

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      seconds: { type: 'string', default: '120' },
      rate: { type: 'string', default: '36' },
      seed: { type: 'string', default: '1' },
      port: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const config = parseConfig(process.env)
  const url = localUrl(values.url ?? `http://127.0.0.1:${config.PORT}`)
  const numbers = {
    seconds: numberOf('seconds', values.seconds, 3, 3_600),
    rate: numberOf('rate', values.rate, 1, 200),
    seed: wholeNumberOf('seed', values.seed, 0, 2 ** 31),
  }
  await requireRunning(url)
  const say = (text: string): void => void process.stderr.write(`${text}\n`)
  say(`SmartQueue at ${url}: ${numbers.seconds} s of mixed work. Ctrl-C ends it early.`)
  const summary = await runDemo({
    url,
    ...numbers,
    targetPort: await findTargetPort(config, values.port),
    signal: untilInterrupted(),
    progress: createProgress(process.stderr),
    say,
  })
  console.log(values.json ? JSON.stringify(summary) : renderReport(summary))
  return summary.ended === 'unreachable' ? 1 : 0
}

/** The accounts of the demo have a password that everybody knows, so it makes them on this machine only. */
const localUrl = (text: string): string => {
  const url = URL.parse(text)
  if (url?.protocol !== 'http:') throw new UsageError('--url must be an http: URL, as npm run dev prints it.')
  if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) {
    throw new UsageError('--url must be of this machine: the demo makes accounts with a known password.')
  }
  return url.origin
}

const requireRunning = async (url: string): Promise<void> => {
  try {
    const { response } = await reach(`${url}/readyz`)
    if (response.ok) return
    throw new Unreachable(`/readyz answered ${response.status}`)
  } catch (error) {
    throw new UsageError(
      `SmartQueue does not answer at ${url} (${describeError(error)}). Run \`npm run dev\` in another terminal, wait for "SmartQueue ready", and try again.`,
    )
  }
}

/** The one that the running system lets its jobs call; if it has its own rules, any, and a first job tells whether it fits them. */
const findTargetPort = async (config: Config, given: string | undefined): Promise<number> =>
  given === undefined
    ? (readDemoPort(config.SMARTQUEUE_HOME) ?? (await freePort()))
    : wholeNumberOf('port', given, 1, 65_535)

/** Ctrl-C, which comes twice when npm passes it on; later again: leave at once. */
const untilInterrupted = (): AbortSignal => {
  const controller = new AbortController()
  let firstAtMs: number | undefined
  const interrupt = (): void => {
    firstAtMs ??= performance.now()
    if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(1)
    controller.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
  return controller.signal
}

runCommand('The demo failed', main)

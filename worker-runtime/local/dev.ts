import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../command.ts'
import { type Config, parseConfig } from '../config.ts'
import { describeError } from '../describe-error.ts'
import { isAllowed } from '../egress/address-guard.ts'
import { type Home, openHome } from './home.ts'
import { createLocalSystem, EXAMPLE_USER, PartFailed, type Step } from './local-system.ts'
import { isPortFree } from './ports.ts'
import { parentage } from './process-group.ts'

const HELP = `Usage: npm run dev [-- --workerd]

Runs all of SmartQueue on this machine: PostgreSQL, the functions on workerd, and workers.

  --workerd        serve prebuilt functions with plain workerd, as npm run functions does: faster and with less
                   memory than wrangler dev, but without rebuilding them when their sources change

  PORT             where the API listens           (8787)
  DATABASE_URL     use this Postgres instead of an embedded one
  SMARTQUEUE_HOME  where data and keys are kept    (.smartqueue)
  SMARTQUEUE_MIN_WORKERS, SMARTQUEUE_MAX_WORKERS   how many workers there may be (1, 5)

README.md has the whole table. Ctrl-C stops everything and keeps the data.`

const PARENT_CHECK_MS = 1_000
const SAME_SIGNAL_MS = 300

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { workerd: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) return print(HELP)
  const config = parseConfig(process.env)
  if (!(await isPortFree(config.PORT))) {
    const other = config.PORT < 65_535 ? config.PORT + 1 : 8787
    throw new UsageError(`Port ${config.PORT} is taken. Set PORT to a free one: PORT=${other} npm run dev`)
  }
  const home = openHome(config.SMARTQUEUE_HOME)
  try {
    return await runUntilStopped(config, home, values.workerd)
  } finally {
    home.unlock()
  }
}

const runUntilStopped = async (config: Config, home: Home, plainWorkerd: boolean): Promise<number> => {
  const system = createLocalSystem(config, home, { plainWorkerd })
  const asked = untilAskedToStop()
  const startedAt = performance.now()
  print('SmartQueue starts…')
  const start = system.start({ onStep: showStep(startedAt), say: print }).then(
    (started) => announce(config, started),
    (error: Error) => new PartFailed(describeError(error)),
  )
  // A start that succeeds is no end: then only a signal or a death is.
  const failedStart = start.then((error) => error ?? new Promise<never>(() => {}))
  try {
    const ended = await Promise.race([asked, system.failed, failedStart])
    if (ended instanceof PartFailed) {
      console.error(`${ended.message.replace(/\.?$/, '.')} Stopping everything.`)
      return 1
    }
    print('Stopping: running jobs may finish first. Ctrl-C again to stop at once.')
    return 0
  } finally {
    await system.stop()
    print('Stopped. The data is kept.')
  }
}

/** A signal, or the end of the npm process that started this one. */
const untilAskedToStop = (): Promise<void> =>
  new Promise((resolve) => {
    let askedAtMs: number | undefined
    const ask = (): void => {
      askedAtMs ??= performance.now()
      // The second time: leave now. The reaper ends what still runs. Not for one Ctrl-C that comes twice,
      // from the terminal and from npm.
      if (performance.now() - askedAtMs > SAME_SIGNAL_MS) {
        print('Stopped at once. Unfinished jobs are taken over when their leases run out.')
        process.exit(1)
      }
      resolve()
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask)
    if (!process.env.npm_lifecycle_event) return
    const parents = parentage()
    setInterval(() => {
      if (parentage() !== parents && askedAtMs === undefined) ask()
    }, PARENT_CHECK_MS).unref()
  })

const showStep =
  (startedAt: number) =>
  ({ part, detail }: Step): void => {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    print(`  ✓ ${part.padEnd(11)} ${seconds.padStart(4)} s  ${detail}`)
  }

/** Three commands to paste. The account may be there from an earlier start; then they sign in. */
const announce = (config: Config, { exampleExists }: { exampleExists: boolean }): undefined => {
  const url = `http://127.0.0.1:${config.PORT}`
  const json = `-H 'content-type: application/json'`
  const auth = `-H "authorization: Bearer $TOKEN"`
  // The functions answer /healthz themselves: a first job that works without a network, where it is allowed.
  const self = {
    hostname: '127.0.0.1',
    port: config.PORT,
    address: '127.0.0.1',
    allow: config.SMARTQUEUE_HTTP_ALLOW,
  }
  const target = isAllowed(self) ? `${url}/healthz` : 'https://example.com/'
  const signIn = `${url}/auth/${exampleExists ? 'login' : 'register'}`
  const credentials = JSON.stringify({ username: EXAMPLE_USER, password: 'correct horse battery' })
  const job = JSON.stringify({ name: 'hello', type: 'http', payload: { url: target } })
  print(`
SmartQueue ready: ${url}
Open it for the dashboard. Or ${exampleExists ? 'sign in' : 'register'}, submit and look by the API, which is described at ${url}/docs
  TOKEN=$(curl -s ${signIn} ${json} -d '${credentials}' | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
  curl -s ${url}/jobs ${auth} ${json} -d '${job}'
  curl -s ${url}/jobs ${auth}
Watch it learn, in another terminal: ${sameSettings(config)}npm run demo
Make an admin, who sees all organisations: npm run admin -- create USERNAME`)
}

/** Other commands find this system by what it was started with. */
const sameSettings = (config: Config): string =>
  [`PORT=${config.PORT} `, `SMARTQUEUE_HOME=${config.SMARTQUEUE_HOME} `]
    .filter((setting) => !['PORT=8787 ', 'SMARTQUEUE_HOME=.smartqueue '].includes(setting))
    .join('')

const print = (text: string): number => {
  console.log(text)
  return 0
}

runCommand('SmartQueue could not start', main)

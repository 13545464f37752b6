import { findUser } from '../../db/queries/accounts.ts'
import type { Config } from '../config.ts'
import { createDatabase } from '../database.ts'
import { ensureLogin, type Runtime, withLogin } from '../database-login.ts'
import { migrateDatabase, withClient } from '../migrate.ts'
import { createAutoscaler } from './autoscaler.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { reachPostgres } from './external-postgres.ts'
import { functionsBindings } from './functions-bindings.ts'
import { type FunctionsServer, spawnFunctions } from './functions-server.ts'
import type { Home } from './home.ts'
import { type NeonGateway, startNeonGateway } from './neon-gateway.ts'
import { freePort } from './ports.ts'
import { findMembers } from './process-group.ts'
import { startReaper } from './reaper-link.ts'
import { httpAnswers, postgresAnswers, stillRuns, type VitalSign, watchVitalSigns } from './vital-signs.ts'
import { createWorkerPool, type PoolWorker, type WorkerPool } from './worker-pool.ts'
import { buildFunctions, serveFunctions } from './workerd/server.ts'

/** A part of the system could not start, or has died. */
export class PartFailed extends Error {}

export type Step = { part: string; detail: string }

export type Teller = {
  onStep: (step: Step) => void
  /** What happens later. */
  say: (line: string) => void
}

export type LocalSystem = {
  /** Starts the parts one after the other; tells each once it runs. */
  start(teller: Teller): Promise<{ exampleExists: boolean }>
  /** Resolves, with the reason, when a part dies that was not asked to. */
  readonly failed: Promise<PartFailed>
  /** Stops what runs, in reverse order. Twice is safe. */
  stop(): Promise<void>
}

/** The functions and the workers connect as they do in production: by logins of their own, which see no more than they need. */
const ensureLogins = (url: string, home: Home): Promise<Record<Runtime, string>> =>
  withClient(url, async (client) => {
    const urlOf = async (runtime: Runtime): Promise<string> => {
      const login = home.loginOf(runtime)
      await ensureLogin(client, runtime, login)
      return withLogin(url, login)
    }
    return { functions: await urlOf('functions'), workers: await urlOf('workers') }
  })

/** Who the printed commands register. */
export const EXAMPLE_USER = 'ada'
const findExample = findUser(EXAMPLE_USER)

/**
 * Everything that `npm run dev` runs. Whoever starts it must also stop it, also after a failed start. `plainWorkerd`: the
 * functions are built once and served as `npm run functions` does, without wrangler.
 */
export const createLocalSystem = (
  config: Config,
  home: Home,
  options: { plainWorkerd?: boolean } = {},
): LocalSystem => {
  const server = options.plainWorkerd ? 'workerd' : 'wrangler dev'

  const { promise: failed, resolve: fail } = Promise.withResolvers<PartFailed>()
  /** How to stop what runs, in the order it was started. */
  const stops: (() => Promise<unknown>)[] = []
  const signs: VitalSign[] = []
  const reaper = startReaper(() => fail(new PartFailed('The reaper of orphaned processes died.')))
  const baseUrl = `http://127.0.0.1:${config.PORT}`

  const died = (name: string) => (how: string) =>
    fail(new PartFailed(`${name} ${how} without being asked to.`))

  const startPostgres = async (): Promise<{ url: string; detail: string }> => {
    if (config.DATABASE_URL) return reachPostgres(config.DATABASE_URL)
    const { postgresDir: dataDir, postgresPassword: password } = home
    const postgres = await startEmbeddedPostgres({
      dataDir,
      password,
      onSpawn: (pid) => reaper.guard({ pid, signal: 'SIGINT', graceMs: 10_000 }),
    })
    stops.push(postgres.stop)
    postgres.exited.then(() => died('PostgreSQL')('ended'))
    signs.push({ part: 'PostgreSQL', check: postgresAnswers(postgres.url) })
    return { url: postgres.url, detail: `${postgres.version} embedded, data in ${postgres.dataDir}` }
  }

  const startGateway = async (target: string): Promise<NeonGateway> => {
    const gateway = await startNeonGateway({ target })
    stops.push(gateway.stop)
    return gateway
  }

  const startFunctions = async (gateway: NeonGateway): Promise<void> => {
    const bindings = functionsBindings(
      { ...config, SMARTQUEUE_REGISTRATION: config.SMARTQUEUE_REGISTRATION ?? 'open' },
      gateway,
      home,
    )
    const functions = options.plainWorkerd ? await startWorkerd(bindings) : startWrangler(bindings)
    stops.push(functions.stop)
    reaper.guard({ pid: functions.pid, signal: 'SIGTERM', graceMs: 5_000 })
    functions.exited.then(died(server))
    const ended = await Promise.race([functions.exited, functions.ready])
    if (ended) throw new PartFailed(`${server} ${ended}.`)
    signs.push({ part: 'Functions', check: httpAnswers(`${baseUrl}/healthz`) })
    // wrangler notices the loss of its bundler only at the next edit.
    if (!options.plainWorkerd) {
      signs.push({ part: 'esbuild', check: stillRuns(findMembers(functions.pid, 'esbuild')) })
    }
  }

  const startWrangler = (bindings: Record<string, string>): FunctionsServer =>
    spawnFunctions({
      port: config.PORT,
      bindingsFile: home.writeBindings(bindings),
      stateDir: home.wranglerDir,
      onCrash: () => died('workerd')('crashed'),
    })

  const startWorkerd = async (bindings: Record<string, string>): Promise<FunctionsServer> => {
    await buildFunctions(home.workerdDir)
    return serveFunctions({ port: config.PORT, folder: home.workerdDir, bindings })
  }

  /**
   * Jobs of `npm run demo` call a server of its own on this machine. For that, and only here, one port of loopback is open to
   * jobs: at random and free, so that nothing else listens there, and told in the home. Whoever sets SMARTQUEUE_HTTP_ALLOW has
   * said what jobs may reach, and nothing is added to that.
   */
  const allowDemo = async (): Promise<NodeJS.ProcessEnv> => {
    if (config.SMARTQUEUE_HTTP_ALLOW.length > 0) return {}
    const port = await freePort()
    home.tellDemoPort(port)
    return { SMARTQUEUE_HTTP_ALLOW: `127.0.0.1:${port}` }
  }

  const createPool = (databaseUrl: string, settings: NodeJS.ProcessEnv): WorkerPool =>
    createWorkerPool({
      env: { ...process.env, ...settings, DATABASE_URL: databaseUrl },
      drainSeconds: config.SMARTQUEUE_DRAIN_SECONDS,
      reaper,
      onDeath: died('A worker'),
    })

  const startAutoscaler = (databaseUrl: string, pool: WorkerPool, say: (line: string) => void): string => {
    const { SMARTQUEUE_MIN_WORKERS: min, SMARTQUEUE_MAX_WORKERS: max } = config
    if (min === max) return `${min} ${min === 1 ? 'worker' : 'workers'}, always`
    const onError = (): void => {}
    const applicationName = 'smartqueue autoscaler'
    const database = createDatabase({ url: databaseUrl, applicationName, maxConnections: 1, onError })
    const onFailure = (error: Error): void => fail(new PartFailed(error.message))
    const autoscaler = createAutoscaler({ run: database.run, pool, range: { min, max }, say, onFailure })
    stops.push(database.close)
    // With the workers: a look may be waiting for one that has not started yet.
    stops.push(() => Promise.all([autoscaler.stop(), pool.stop()]))
    autoscaler.start()
    return `${min} to ${max} workers, by predicted work: ${baseUrl}/autoscale`
  }

  const startAll = async ({ onStep, say }: Teller): Promise<{ exampleExists: boolean }> => {
    const told = (step: Step): void => {
      if (stopping) throw new PartFailed('Stopped while starting.')
      onStep(step)
    }
    const { url, detail } = await startPostgres()
    told({ part: 'PostgreSQL', detail })
    const { applied, version } = await migrateDatabase(url)
    told({ part: 'Migrations', detail: `schema at version ${version}, ${applied.length} applied now` })
    home.tellDatabaseUrl(url)
    const logins = await ensureLogins(url, home)
    told({ part: 'Logins', detail: 'functions and workers, under row-level security' })
    const gateway = await startGateway(logins.functions)
    told({ part: 'Gateway', detail: `Neon's protocol at ${gateway.address}` })
    await startFunctions(gateway)
    told({ part: 'Functions', detail: `${server} at ${baseUrl}` })
    const pool = createPool(logins.workers, await allowDemo())
    stops.push(pool.stop)
    while (pool.workers().length < config.SMARTQUEUE_MIN_WORKERS) {
      told({ part: 'Worker', detail: describeWorker(await pool.add()) })
    }
    told({ part: 'Autoscaler', detail: startAutoscaler(logins.workers, pool, say) })
    vitalSigns.start()
    const accounts = await withClient(url, (client) =>
      client.query(findExample.text, [...findExample.values]),
    )
    return { exampleExists: accounts.rows.length > 0 }
  }

  const stopParts = async (): Promise<void> => {
    for (let stop = stops.pop(); stop; stop = stops.pop()) await stop()
  }

  const stopAll = async (): Promise<void> => {
    await vitalSigns.stop()
    // Stopped in the middle of a start, that fails, but may have started one more part by then.
    await stopParts()
    await starting?.catch(() => {})
    await stopParts()
    reaper.release()
  }

  const vitalSigns = watchVitalSigns(signs, (part, reason) => fail(new PartFailed(`${part} ${reason}.`)))
  let starting: Promise<unknown> | undefined
  let stopping: Promise<void> | undefined

  return {
    failed,
    start: (teller) => {
      const started = startAll(teller)
      starting = started
      return started
    },
    stop: () => {
      stopping ??= stopAll()
      return stopping
    },
  }
}

const describeWorker = ({ workerId, types, metricsPort }: PoolWorker): string =>
  `${workerId} runs ${types.join(', ')} jobs, metrics at http://127.0.0.1:${metricsPort}/metrics`

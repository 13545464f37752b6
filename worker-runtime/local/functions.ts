/**
 * The functions alone, on plain `workerd serve`, for a Postgres that has its workers elsewhere: in containers, or in a cluster
 * on this machine. On Cloudflare they reach Neon without a gateway.
 */
import { parseArgs } from 'node:util'
import { createRedactor } from '../../functions/redaction.ts'
import { runCommand, UsageError } from '../command.ts'
import { ConfigError, parseConfig, secretsOf } from '../config.ts'
import { createLogger } from '../logger.ts'
import { functionsBindings } from './functions-bindings.ts'
import { openHome } from './home.ts'
import { startNeonGateway } from './neon-gateway.ts'
import { isPortFree } from './ports.ts'
import { buildFunctions, serveFunctions } from './workerd/server.ts'

const HELP = `Usage: node worker-runtime/local/functions.ts [--ip ADDRESS]

Serves the API and the dashboard for DATABASE_URL, which is a login of the functions (npm run admin -- database-login functions).

  --ip ADDRESS     where to listen                 (127.0.0.1)
  PORT             and on which port               (8787)
  SMARTQUEUE_HOME  where signing keys are kept     (.smartqueue)`

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { ip: { type: 'string', default: '127.0.0.1' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const config = parseConfig(process.env)
  const { DATABASE_URL: target, PORT: port } = config
  if (!target) throw new ConfigError('DATABASE_URL: the functions need the Postgres that jobs are in')
  if (!(await isPortFree(port))) throw new UsageError(`Port ${port} is taken. Set PORT to a free one.`)
  const logger = createLogger({
    level: config.SMARTQUEUE_LOG_LEVEL,
    redactor: createRedactor(secretsOf(config)),
  })
  const home = openHome(config.SMARTQUEUE_HOME)
  await buildFunctions(home.workerdDir)
  const gateway = await startNeonGateway({ target })
  const functions = serveFunctions({
    ip: values.ip,
    port,
    folder: home.workerdDir,
    bindings: functionsBindings(config, gateway, home),
  })
  const { promise: asked, resolve: ask } = Promise.withResolvers<undefined>()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => ask(undefined))
  const over = Promise.race([asked, functions.exited])
  // It also resolves when they have ended.
  let isOver = false
  over.then(() => {
    isOver = true
  })
  functions.ready.then(() => {
    if (!isOver) logger.info('functions ready', { url: `http://${values.ip}:${port}` })
  })
  const ended = await over
  if (ended !== undefined) logger.error('the functions have ended', { reason: ended })
  await functions.stop()
  await gateway.stop()
  home.unlock()
  return ended === undefined ? 0 : 1
}

runCommand('The functions could not start', main)

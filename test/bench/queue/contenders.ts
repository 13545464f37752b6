import { isInstalled } from '../peers/load.ts'
import { bullmq } from './bullmq.ts'
import type { Contender } from './contender.ts'
import { graphileBatched, graphileDefault } from './graphile.ts'
import { pgBoss } from './pg-boss.ts'
import { isRedisInstalled } from './redis-store.ts'
import { smartqueue } from './smartqueue.ts'

const PACKAGES = ['graphile-worker', 'pg-boss', 'bullmq']

/** SmartQueue, and those of the peers that this machine can run; says in a line which it cannot. */
export const findContenders = async (say: (line: string) => void): Promise<Contender[]> => {
  const installed = await Promise.all(PACKAGES.map(isInstalled))
  if (!installed.every(Boolean)) {
    say('The peers are not installed, so SmartQueue runs alone. To compare: npm run bench:peers')
    return [smartqueue]
  }
  const onPostgres = [smartqueue, graphileDefault(), graphileBatched(), pgBoss()]
  if (isRedisInstalled()) return [...onPostgres, bullmq()]
  say('BullMQ is skipped: there is no redis-server on the PATH.')
  return onPostgres
}

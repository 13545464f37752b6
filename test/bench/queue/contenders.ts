import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isInstalled } from '../peers/load.ts'
import { bullmq } from './bullmq.ts'
import type { Contender } from './contender.ts'
import { graphileBatched, graphileDefault } from './graphile.ts'
import { BEFORE } from './metrics.ts'
import { pgBoss } from './pg-boss.ts'
import { isRedisInstalled } from './redis-store.ts'
import { smartqueue } from './smartqueue.ts'

const PACKAGES = ['graphile-worker', 'pg-boss', 'bullmq']

/** SmartQueue, an earlier commit of it if one is given, and the peers that this machine can run. */
export const findContenders = async (say: (line: string) => void, before?: string): Promise<Contender[]> => {
  const ours = before === undefined ? [smartqueue] : [smartqueue, await loadBefore(before)]
  return [...ours, ...(await findPeers(say))]
}

export const loadBefore = async (folder: string): Promise<Contender> => {
  const file = pathToFileURL(resolve(folder, 'test/bench/queue/smartqueue.ts'))
  const { smartqueue: earlier } = (await import(file.href)) as { smartqueue: Contender }
  return { ...earlier, key: BEFORE, name: 'Before', about: folder }
}

const findPeers = async (say: (line: string) => void): Promise<Contender[]> => {
  const installed = await Promise.all(PACKAGES.map(isInstalled))
  if (!installed.every(Boolean)) {
    say('The peers are not installed, so SmartQueue runs alone. To compare: npm run bench:peers')
    return []
  }
  const onPostgres = [graphileDefault(), graphileBatched(), pgBoss()]
  if (isRedisInstalled()) return [...onPostgres, bullmq()]
  say('BullMQ is skipped: there is no redis-server on the PATH.')
  return onPostgres
}

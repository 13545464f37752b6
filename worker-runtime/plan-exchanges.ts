import { type Claim, type EndedAttempt, exchangeJobs } from '../db/queries/exchange.ts'
import { claimLoneJob } from '../db/queries/lone-claim.ts'
import type { Run } from '../db/query.ts'

/**
 * Has the statements planned that an ordinary day needs, which takes a while, before the first job waits for them.
 * Nobody holds the lease that the outcomes name: nothing is stored.
 */
export const planExchanges = async (options: {
  workerId: string
  runDurable: Run
  runRelaxed: Run
  /** One that claims nothing. */
  claim: Claim
  traced: boolean
}): Promise<void> => {
  const { workerId, runDurable, runRelaxed, claim, traced } = options
  const nothing = { workerId, leaseSeconds: 0, ended: [], started: [], closed: [], leaseJobs: 1, traced }
  const plan = (run: Run, how: Pick<Claim, 'order' | 'reranked'>, ended: EndedAttempt[]) =>
    run(exchangeJobs({ ...nothing, ended, claim: { ...claim, ...how } }))
  for (const how of ORDERS) {
    await Promise.all([plan(runRelaxed, how, []), plan(runDurable, how, [NOBODYS])])
    await plan(runDurable, how, [{ ...NOBODYS, resultJson: 'true' }])
  }
  for (const order of ['rank', 'age'] as const) {
    await runRelaxed(claimLoneJob({ workerId, leaseSeconds: 0, types: [], order }))
  }
}

const ORDERS = [
  { order: 'rank', reranked: false },
  { order: 'rank', reranked: true },
  { order: 'age', reranked: false },
] as const

const NIL = '00000000-0000-0000-0000-000000000000'
const NOBODYS: Extract<EndedAttempt, { state: 'completed' }> = {
  job_id: NIL,
  org_id: NIL,
  token: '0',
  series_id: '0',
  attempt: 1,
  ranMs: 0,
  announced: true,
  state: 'completed',
  resultJson: null,
}

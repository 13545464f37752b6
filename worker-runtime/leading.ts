import { createAnalyticsDuties } from './analytics/duties.ts'
import { createAutoscaleDuty } from './autoscale/duty.ts'
import { createCallbackDuty } from './callbacks/duty.ts'
import type { Config } from './config.ts'
import { type Database, SHORT_TRANSACTIONS } from './database.ts'
import { createDuties } from './duties.ts'
import type { FailureReports } from './failure-reports.ts'
import { createLeader, type Leader } from './leader.ts'
import { createLeadership } from './leadership.ts'
import { createLearningDuty } from './learning/duty.ts'
import type { Logger } from './logger.ts'
import { createScheduleDuty, FIRING_LANES } from './schedules/duty.ts'
import { createTickPredictions } from './schedules/tick-predictions.ts'

/** What of a worker leads, while it is its turn: the election, and all that the leader does for everybody. */
export const createLeading = (options: {
  workerId: string
  url: string
  config: Config
  /** For what need not wait for the disk. */
  upkeep: Database
  connect: (maxConnections: number, settings: Record<string, string>) => Database
  logger: Logger
  failed: FailureReports
  /** Another thread to learn in. */
  learningThread: URL | undefined
}): Leader => {
  const { workerId, url, logger, failed } = options
  const { run } = options.upkeep
  const { SMARTQUEUE_RETENTION_DAYS: retentionDays } = options.config
  // A session for each schedule that is fired side by side, and one to tell of jobs that have ended.
  const transactions = options.connect(FIRING_LANES + 1, SHORT_TRANSACTIONS)
  const { transaction } = transactions
  const leader = createLeader({
    leadership: createLeadership({
      url,
      workerId,
      applicationName: `smartqueue ${workerId} leader`,
      logger,
      onError: failed('leader election'),
    }),
    duties: [
      ...createDuties({ run, logger, retentionDays }),
      createScheduleDuty({
        run,
        transaction,
        predictions: createTickPredictions({ run, onError: failed('predictor') }),
        logger,
        onError: failed('schedules'),
      }),
      createCallbackDuty({ run, transaction, logger }),
      ...createAnalyticsDuties({ run, logger }),
      createAutoscaleDuty({ run, config: options.config }),
      createLearningDuty({
        url,
        applicationName: `smartqueue ${workerId} learner`,
        logger,
        onError: failed('learning'),
        leadSeconds: options.config.SMARTQUEUE_LEAD_SECONDS,
        sharesEstimates: options.config.SMARTQUEUE_SHARED_ESTIMATES === 'on',
        thread: options.learningThread,
      }),
    ],
    onError: (duty, error) => failed(duty)(error),
  })
  let stopping: Promise<void> | undefined
  return {
    start: leader.start,
    term: leader.term,
    stop: () => {
      stopping ??= leader.stop().then(transactions.close)
      return stopping
    },
  }
}

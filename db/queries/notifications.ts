import { JOBS_READY } from '../channels.ts'
import type { Query } from '../query.ts'

export const listenForReadyJobs = (): Query<never> => ({
  name: 'listen-for-ready-jobs',
  text: `listen ${JOBS_READY}`,
  values: [],
})

/** Finds out whether the other end of a connection is still there. */
export const ping = (): Query<{ alive: boolean }> => ({
  name: 'ping',
  text: 'select true as alive',
  values: [],
})

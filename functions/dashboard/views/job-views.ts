/** What those use who look after jobs. */
export { View as DeadLetters } from './dead-letters/dead-letters.tsx'
export { View as Jobs } from './jobs/jobs.tsx'

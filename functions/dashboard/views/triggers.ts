/** What makes jobs come, and what runs them. */
export { View as Schedules } from './schedules/schedules.tsx'
export { View as Webhooks } from './webhooks/webhooks.tsx'
export { View as Workers } from './workers/workers.tsx'

/** What makes jobs come, what runs them, and what is looked at now and then. */
export { View as Account } from './account/account.tsx'
export { View as Audit } from './audit/audit.tsx'
export { View as Keys } from './keys/keys.tsx'
export { View as Model } from './model/model.tsx'
export { View as Organisation } from './organisation/organisation.tsx'
export { View as Schedules } from './schedules/schedules.tsx'
export { View as Webhooks } from './webhooks/webhooks.tsx'
export { View as Workers } from './workers/workers.tsx'

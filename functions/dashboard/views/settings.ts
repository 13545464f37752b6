/** What is looked at now and then. */
export { View as Audit } from './audit/audit.tsx'
export { View as Keys } from './keys/keys.tsx'
export { View as Model } from './model/model.tsx'
export { View as Organisation } from './organisation/organisation.tsx'

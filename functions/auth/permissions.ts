import type { Role } from '../../db/rules/roles.ts'

/**
 * Who may do what: the one table behind every route. `role` is the least that is needed; `key` says whether an API key can
 * be given the permission, as a scope of the same name. Accounts, members and keys are for people: a leaked key must not
 * be able to make itself another.
 */
export const PERMISSIONS = {
  'jobs:read': {
    role: 'user',
    key: true,
    about:
      'see jobs, logs, dead letters, workers, pauses, schedules, predictions, the model, analytics, the stream',
  },
  'jobs:submit': { role: 'user', key: true, about: 'submit jobs' },
  'jobs:manage': { role: 'user', key: true, about: 'cancel and retry jobs' },
  'schedules:manage': {
    role: 'user',
    key: true,
    about: 'make, change, pause, run and delete schedules',
  },
  'queue:manage': { role: 'org_admin', key: true, about: 'pause and resume the queue' },
  'webhooks:read': { role: 'user', key: true, about: 'see webhook sources, deliveries and callbacks' },
  'webhooks:manage': {
    role: 'org_admin',
    key: true,
    about: 'manage webhook sources, callback endpoints and what they sign with, replay deliveries',
  },
  'org:read': { role: 'user', key: true, about: 'see the organisation, its members and quotas' },
  'org:manage': {
    role: 'org_admin',
    key: false,
    about: 'invite members, change their roles, remove them, export and delete the organisation',
  },
  'org:leave': { role: 'user', key: false, about: 'leave the organisation' },
  'audit:read': { role: 'org_admin', key: true, about: 'read the audit log' },
  account: {
    role: 'user',
    key: false,
    about: "manage, export and delete one's own account, keys and memberships",
  },
  platform: { role: 'admin', key: false, about: 'see all users and deleted organisations, and set quotas' },
} as const satisfies Record<string, { role: Role; key: boolean; about: string }>

export type Permission = keyof typeof PERMISSIONS

type KeyPermission = {
  [P in Permission]: (typeof PERMISSIONS)[P]['key'] extends true ? P : never
}[Permission]

/** What an API key can be given. */
export const SCOPES = Object.entries(PERMISSIONS).flatMap(([name, { key }]) =>
  key ? [name as KeyPermission] : [],
) as [KeyPermission, ...KeyPermission[]]

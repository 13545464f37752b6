import type { ComponentType } from 'preact'
import type { Permission } from '../../auth/permissions.ts'
import type { IconName } from '../ui/icon.tsx'
import { View as Overview } from './overview/overview.tsx'

export type View = {
  /** The first part of the path. */
  path: string
  title: string
  icon: IconName
  /** Who has it not does not see the view. */
  needs: Permission
  load: () => Promise<ComponentType<ViewProps>>
}

/** What follows the first part of the path, such as the id of a job. */
export type ViewProps = { rest: string[] }

/** Views that are used together are loaded together: one file each compresses worse, by 12 kB in all. */
const jobViews = () => import('./job-views.ts')
const managementViews = () => import('./management-views.ts')

/** All views, in the order of the menu. */
export const VIEWS: readonly View[] = [
  { path: '', title: 'Overview', icon: 'overview', needs: 'jobs:read', load: async () => Overview },
  {
    path: 'jobs',
    title: 'Jobs',
    icon: 'jobs',
    needs: 'jobs:read',
    load: async () => (await jobViews()).Jobs,
  },
  {
    path: 'dead-letters',
    title: 'Dead letters',
    icon: 'dead',
    needs: 'jobs:read',
    load: async () => (await jobViews()).DeadLetters,
  },
  {
    path: 'schedules',
    title: 'Schedules',
    icon: 'schedules',
    needs: 'jobs:read',
    load: async () => (await managementViews()).Schedules,
  },
  {
    path: 'webhooks',
    title: 'Webhooks',
    icon: 'webhooks',
    needs: 'webhooks:read',
    load: async () => (await managementViews()).Webhooks,
  },
  {
    path: 'workers',
    title: 'Workers',
    icon: 'workers',
    needs: 'jobs:read',
    load: async () => (await managementViews()).Workers,
  },
  {
    path: 'model',
    title: 'Model',
    icon: 'model',
    needs: 'jobs:read',
    load: async () => (await managementViews()).Model,
  },
  {
    path: 'organisation',
    title: 'Organisation',
    icon: 'organisation',
    needs: 'org:read',
    load: async () => (await managementViews()).Organisation,
  },
  {
    path: 'keys',
    title: 'API keys',
    icon: 'keys',
    needs: 'account',
    load: async () => (await managementViews()).Keys,
  },
  {
    path: 'audit',
    title: 'Audit',
    icon: 'audit',
    needs: 'audit:read',
    load: async () => (await managementViews()).Audit,
  },
  {
    path: 'account',
    title: 'Account',
    icon: 'account',
    needs: 'account',
    load: async () => (await managementViews()).Account,
  },
]

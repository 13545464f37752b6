import type { ComponentType } from 'preact'
import type { Permission } from '../../auth/permissions.ts'
import type { IconName } from '../ui/icon.tsx'

export type View = {
  /** The first part of the path. */
  path: string
  title: string
  icon: IconName
  /** Who has it not does not see the view. */
  needs: Permission
  load: () => Promise<{ View: ComponentType<ViewProps> }>
}

/** What follows the first part of the path, such as the id of a job. */
export type ViewProps = { rest: string[] }

/** All views, in the order of the menu. Each is a chunk of its own but the first, which everybody sees. */
export const VIEWS: readonly View[] = [
  {
    path: '',
    title: 'Overview',
    icon: 'overview',
    needs: 'jobs:read',
    load: () => import('./overview/overview.tsx'),
  },
  { path: 'jobs', title: 'Jobs', icon: 'jobs', needs: 'jobs:read', load: () => import('./jobs/jobs.tsx') },
  {
    path: 'dead-letters',
    title: 'Dead letters',
    icon: 'dead',
    needs: 'jobs:read',
    load: () => import('./dead-letters/dead-letters.tsx'),
  },
  {
    path: 'schedules',
    title: 'Schedules',
    icon: 'schedules',
    needs: 'jobs:read',
    load: () => import('./schedules/schedules.tsx'),
  },
  {
    path: 'webhooks',
    title: 'Webhooks',
    icon: 'webhooks',
    needs: 'webhooks:read',
    load: () => import('./webhooks/webhooks.tsx'),
  },
  {
    path: 'workers',
    title: 'Workers',
    icon: 'workers',
    needs: 'jobs:read',
    load: () => import('./workers/workers.tsx'),
  },
  {
    path: 'model',
    title: 'Model',
    icon: 'model',
    needs: 'jobs:read',
    load: () => import('./model/model.tsx'),
  },
  {
    path: 'organisation',
    title: 'Organisation',
    icon: 'organisation',
    needs: 'org:read',
    load: () => import('./organisation/organisation.tsx'),
  },
  { path: 'keys', title: 'API keys', icon: 'keys', needs: 'account', load: () => import('./keys/keys.tsx') },
  {
    path: 'audit',
    title: 'Audit',
    icon: 'audit',
    needs: 'audit:read',
    load: () => import('./audit/audit.tsx'),
  },
]

import type { Page } from './api.ts'
import type { TenantName } from './kinds.ts'
import type { Tenant } from './tenants.ts'

/** A job as `GET /jobs` lists it. */
export type ListedJob = {
  id: string
  name: string
  type: string
  status: string
  prediction: { p50_ms: number; p90_ms: number }
  deadline: string | null
  created_at: string
  started_at: string | null
  finished_at: string | null
}

export type SeenJob = ListedJob & { tenant: TenantName }

export type Observer = {
  /** Reads what has changed; `all`: also of jobs that waited for their time. */
  look(all?: boolean): Promise<void>
  jobs(): SeenJob[]
}

const FINISHED = ['completed', 'failed', 'cancelled']
export const isFinished = ({ status }: { status: string }): boolean => FINISHED.includes(status)

const PAGE = 200
/** In each look: some minutes of what a tenant submits. What is older, and still waits, is read in the end. */
const MOST_PAGES = 4

/** Follows all jobs of the tenants since a time by pages of `GET /jobs`: a look costs a few requests, not one for each job. */
export const createObserver = (tenants: readonly Tenant[], since: Date): Observer => {
  const seen = new Map<string, SeenJob>()

  /** Ids are in the order of submission: behind the oldest job that is on its way, nothing changes any more. */
  const oldestOnItsWay = (tenant: Tenant): string | undefined => {
    for (const job of seen.values()) {
      if (job.tenant === tenant.name && job.status !== 'pending' && !isFinished(job)) return job.id
    }
    return undefined
  }

  const lookAt = async (tenant: Tenant, all: boolean): Promise<void> => {
    const newest = [...seen.values()].findLast((job) => job.tenant === tenant.name)?.id
    const enough = oldestOnItsWay(tenant) ?? newest ?? ''
    const found: SeenJob[] = []
    let cursor = ''
    for (let page = 0; all || page < MOST_PAGES; page++) {
      const query = `limit=${PAGE}&created_after=${since.toISOString()}${cursor}`
      const { items, next_cursor } = await tenant.api.get<Page<ListedJob>>(`/jobs?${query}`)
      found.push(...items.map((job) => ({ ...job, tenant: tenant.name })))
      if (next_cursor === null || (!all && (items.at(-1)?.id ?? '') <= enough)) break
      cursor = `&cursor=${next_cursor}`
    }
    for (const job of found.reverse()) seen.set(job.id, job)
  }

  return {
    look: async (all = false) => {
      await Promise.all(tenants.map((tenant) => lookAt(tenant, all)))
    },
    jobs: () => [...seen.values()],
  }
}

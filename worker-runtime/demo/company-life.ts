import type { Page } from './api.ts'
import { DEMO_TAG } from './job-requests.ts'
import { hasStatus, type Say, signIn, type Tenant } from './tenants.ts'

/** What makes tenants out of accounts: a colleague, an open invitation, a schedule. All of it is made once, and found again. */

export const COLLEAGUE = 'Acme-Developer'

/** A second member, who may submit jobs and not manage the organisation. */
export const addColleague = async (baseUrl: string, { owner, orgId }: Tenant, say: Say): Promise<void> => {
  const { api } = await signIn(baseUrl, COLLEAGUE, say)
  try {
    const invitation = { username: COLLEAGUE, role: 'user' }
    const { id } = await owner.post<{ id: string }>(`/orgs/${orgId}/invite`, invitation)
    await api.post(`/orgs/invitations/${id}/accept`, {})
  } catch (error) {
    // A member since the run before.
    if (!hasStatus(error, 409)) throw error
  }
}

/** By a link that nobody has followed yet. */
export const leaveInvitation = async ({ owner, orgId }: Tenant): Promise<void> => {
  const { items } = await owner.get<Page<unknown>>('/orgs/me/invitations')
  if (items.length === 0) await owner.post(`/orgs/${orgId}/invite`, { role: 'user' })
}

const SCHEDULE = 'count-open-orders'

/** Every minute while the demo runs; `pause` leaves it to be seen, and to be resumed. */
export const startSchedule = async ({ api }: Tenant): Promise<{ pause(): Promise<void> }> => {
  const { items } = await api.get<Page<{ id: string; name: string }>>('/schedules?limit=200')
  const known = items.find(({ name }) => name === SCHEDULE)
  const { id } = known ?? (await api.post<{ id: string }>('/schedules', NEW_SCHEDULE))
  if (known) await api.post(`/schedules/${id}/resume`)
  return { pause: async () => void (await api.post(`/schedules/${id}/pause`)) }
}

const NEW_SCHEDULE = {
  name: SCHEDULE,
  cron: '* * * * *',
  timezone: 'Europe/Berlin',
  job: {
    type: 'etl',
    payload: {
      extract: {
        from: 'inline',
        rows: Array.from({ length: 50 }, (_, n) => ({ id: n, status: n % 3 === 0 ? 'open' : 'paid' })),
      },
      transform: [
        { filter: { path: '$.status', eq: 'open' } },
        { group: { by: [], aggregate: { open: { count: true } } } },
      ],
      load: { to: 'result' },
    },
    tags: ['orders', DEMO_TAG],
    deadline_seconds: 30,
  },
}

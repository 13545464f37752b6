import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { type Page, Refused, reach } from './api.ts'
import { DEMO_TAG } from './job-requests.ts'
import type { Tenant } from './tenants.ts'

/** To the main branch; to another one, which the filter leaves out; and one that the template makes no job of. */
export type Push = 'main' | 'branch' | 'incomplete'

export type Delivery = { status: string; job_id: string | null }

export type WebhookSource = { deliver(push: Push): Promise<Delivery> }

const NAME = 'Pushes to main'

/** A source of GitHub's webhooks: that of the run before, with a new secret, or a new one. */
export const openWebhookSource = async (
  { owner }: Tenant,
  options: { baseUrl: string; targetUrl: string },
): Promise<WebhookSource> => {
  const secret = randomBytes(24).toString('hex')
  const rules = rulesFor(options.targetUrl)
  const { items } = await owner.get<Page<{ id: string; name: string }>>('/webhooks/sources?limit=200')
  const known = items.find(({ name }) => name === NAME)
  if (known) {
    await owner.patch(`/webhooks/sources/${known.id}`, { ...rules, enabled: true })
    await owner.post(`/webhooks/sources/${known.id}/rotate`, { secret, keep_previous_seconds: 0 })
  }
  const body = { name: NAME, scheme: 'github', secret, ...rules }
  const { id } = known ?? (await owner.post<{ id: string }>('/webhooks/sources', body))
  return { deliver: (push) => deliver(`${options.baseUrl}/hooks/${id}`, secret, push) }
}

const rulesFor = (targetUrl: string) => ({
  filter: {
    all: [
      { path: '$event.type', eq: 'push' },
      { path: '$.ref', eq: 'refs/heads/main' },
    ],
  },
  template: {
    name: 'deploy-site',
    type: 'http',
    payload: {
      url: `${targetUrl}/deploy-site`,
      method: 'POST',
      body: { commit: '$.after', repository: '$.repository.full_name' },
    },
    priority: 'high',
    tags: ['deploy', DEMO_TAG],
    deadline_in_seconds: 60,
  },
})

const deliver = async (url: string, secret: string, push: Push): Promise<Delivery> => {
  const body = JSON.stringify({
    ref: push === 'branch' ? 'refs/heads/new-layout' : 'refs/heads/main',
    after: randomBytes(20).toString('hex'),
    ...(push !== 'incomplete' && { repository: { full_name: 'zephyr/site' } }),
  })
  const { response, text } = await reach(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': randomUUID(),
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    },
    body,
  })
  if (!response.ok) throw new Refused('POST /hooks', response, text)
  return JSON.parse(text)
}

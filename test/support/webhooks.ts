import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { sign as signForGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import type { TestAccount } from './accounts.ts'
import type { Answer, Edge } from './edge.ts'

export type TestSource = {
  id: string
  secret: string
  scheme: string
  url: string
  warnings: unknown[]
}

/** What a sender sends: the body as it is signed, and the headers that say so. */
export type Signed = { body: string; headers: Record<string, string> }

export const nowS = (): number => Math.floor(Date.now() / 1000)

const stripe = new Stripe('sk_test_none')

/** Each as the library of the provider signs it. */
export const SIGNERS = {
  github: async (secret: string, body: string, { id = randomUUID() as string } = {}): Promise<Signed> => ({
    body,
    headers: {
      'x-github-event': 'push',
      'x-github-delivery': id,
      'x-hub-signature-256': await signForGithub(secret, body),
    },
  }),
  stripe: async (secret: string, body: string, { at = nowS() } = {}): Promise<Signed> => {
    const header = stripe.webhooks.generateTestHeaderString({
      payload: body,
      secret,
      timestamp: at,
    })
    return { body, headers: { 'stripe-signature': header } }
  },
  'standard-webhooks': async (
    secret: string,
    body: string,
    { at = nowS(), id = `msg_${randomUUID()}` } = {},
  ): Promise<Signed> => ({
    body,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': new Webhook(secret).sign(id, new Date(at * 1000), body),
    },
  }),
  hmac: async (secret: string, body: string, { id = randomUUID() as string } = {}): Promise<Signed> => ({
    body,
    headers: {
      'x-signature': createHmac('sha256', secret).update(body).digest('hex'),
      'x-event-id': id,
    },
  }),
}

/** Takes whatever is sent: the body is the payload. */
export const ANY_JOB = { name: 'hooked', type: 'test', payload: { event: '$' } }

/** Ways to make sources of an account, and to send to them. */
export const webhooksOf = (edge: Edge, account: TestAccount) => {
  const { token } = account
  return {
    make: async (source: Record<string, unknown> = {}): Promise<TestSource> => {
      const json = { name: 'a source', scheme: 'hmac', template: ANY_JOB, ...source }
      const answer = await edge.request('POST', '/webhooks/sources', { token, json })
      assert.equal(answer.status, 201, answer.text)
      return answer.body
    },
    change: async (source: TestSource, json: Record<string, unknown>): Promise<Answer> => {
      const answer = await edge.request('PATCH', `/webhooks/sources/${source.id}`, { token, json })
      assert.equal(answer.status, 200, answer.text)
      return answer
    },
    replay: (id: string, json?: Record<string, unknown>): Promise<Answer> =>
      edge.request('POST', `/webhooks/deliveries/${id}/replay`, { token, ...(json && { json }) }),
    deliveries: async (source: TestSource, query = ''): Promise<Record<string, unknown>[]> => {
      const answer = await edge.request('GET', `/webhooks/sources/${source.id}/deliveries${query}`, { token })
      assert.equal(answer.status, 200, answer.text)
      return answer.body.items
    },
    delivery: async (id: string): Promise<Answer['body']> => {
      const answer = await edge.request('GET', `/webhooks/deliveries/${id}`, { token })
      assert.equal(answer.status, 200, answer.text)
      return answer.body
    },
  }
}

export const deliver = (edge: Edge, source: TestSource, { body, headers }: Signed): Promise<Answer> =>
  edge.request('POST', `/hooks/${source.id}`, { body, headers })

/** Signed with the scheme `hmac`, unless it is told otherwise. */
export const send = async (
  edge: Edge,
  source: TestSource,
  event: unknown,
  options: { id?: string } = {},
): Promise<Answer> => {
  const body = typeof event === 'string' ? event : JSON.stringify(event)
  return deliver(edge, source, await SIGNERS.hmac(source.secret, body, options))
}

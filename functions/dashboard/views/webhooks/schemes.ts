import type { Source } from '../../api/answers.ts'

export type SchemeName = Source['scheme']

type Scheme = {
  label: string
  /** What to do at the sender with the address and the secret. */
  setUp: string
  /** Rules to begin with. They work as they are, once the URL is one's own. */
  filter: Record<string, unknown> | null
  template: Record<string, unknown>
}

export const SCHEMES: Record<SchemeName, Scheme> = {
  github: {
    label: 'GitHub',
    setUp:
      'At GitHub: Settings → Webhooks → Add webhook. The address is the payload URL, the content type is application/json.',
    filter: {
      all: [
        { path: '$event.type', eq: 'push' },
        { path: '$.ref', eq: 'refs/heads/main' },
      ],
    },
    template: {
      name: 'deploy {{ $.repository.full_name }}',
      type: 'http',
      payload: {
        url: 'https://deploy.example.com/',
        method: 'POST',
        body: { commit: '$.after', by: '$.pusher.name ?? "nobody"' },
      },
      priority: 'high',
    },
  },
  stripe: {
    label: 'Stripe',
    setUp:
      'At Stripe: Developers → Webhooks → Add destination. Stripe makes the secret itself: put that one in place with “Replace the secret”.',
    filter: { path: '$.type', eq: 'invoice.paid' },
    template: {
      name: 'invoice',
      type: 'http',
      payload: { url: 'https://billing.example.com/{{ $.data.object.id }}' },
      tags: ['stripe', '$.data.object.customer ?? "unknown"'],
    },
  },
  'standard-webhooks': {
    label: 'Standard Webhooks',
    setUp: 'Give the sender the address and the secret.',
    filter: null,
    template: {
      name: '{{ $event.type }}',
      type: 'http',
      payload: { url: 'https://crm.example.com/', method: 'POST', body: '$.data' },
    },
  },
  hmac: {
    label: 'Any HMAC',
    setUp: 'Give the sender the address and the secret.',
    filter: null,
    template: {
      name: 'reading',
      type: 'http',
      payload: { url: 'https://sensors.example.com/', method: 'POST', body: '$' },
    },
  },
}

export const SCHEME_OPTIONS = (Object.keys(SCHEMES) as SchemeName[]).map((value) => ({
  value,
  label: SCHEMES[value].label,
}))

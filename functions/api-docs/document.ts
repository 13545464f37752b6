import type { OpenAPIHono } from '@hono/zod-openapi'
import { PERMISSIONS } from '../auth/permissions.ts'
import type { AppEnv } from '../context.ts'
import { PROBLEMS } from '../http/problem.ts'

const TAGS = [
  { name: 'auth', description: 'Accounts and sign-in.' },
  { name: 'organisations', description: 'Members, invitations, quotas and the audit log.' },
  { name: 'jobs', description: 'Submit jobs and watch them.' },
  { name: 'webhooks', description: 'Events of other systems that become jobs.' },
  { name: 'dead letters', description: 'Jobs that failed for good, by their error.' },
  { name: 'queue', description: 'Pause and resume; shares of the workers.' },
  { name: 'schedules', description: 'Jobs that are submitted again and again, by the clock.' },
  { name: 'analytics', description: 'How the queue does, did and will do.' },
  { name: 'prediction', description: 'How long jobs will take, and how well that is known.' },
  { name: 'callbacks', description: 'Who outside is told when jobs have ended.' },
  { name: 'operations', description: 'For probes and operators.' },
]

/** The OpenAPI document, from the route objects themselves: for the build only, in the Worker they are not registered. */
export const describeApi = (app: OpenAPIHono<AppEnv>): object => {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description:
      '`access_token` of POST /auth/login or POST /auth/register, or an API key of POST /auth/keys.',
  })
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'SmartQueue',
      version: '0.8.0',
      description: 'A multi-tenant job scheduling platform on Postgres.',
      license: { name: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: TAGS,
    'x-permissions': Object.entries(PERMISSIONS).map(([name, permission]) => ({ name, ...permission })),
    'x-problems': Object.entries(PROBLEMS).map(([slug, { status, title }]) => ({ slug, status, title })),
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AUDIT_ACTIONS } from '../../db/queries/audit.ts'
import type { AuditEntry } from '../../functions/dashboard/api/answers.ts'
import { ACTION_WORDS, actorOf, targetOf } from '../../functions/dashboard/views/audit/audit-words.ts'
import { commandFor, endOf } from '../../functions/dashboard/views/keys/key-words.ts'
import { limitOf, typedOf } from '../../functions/dashboard/views/organisation/quota-words.ts'

const ADA = '01a1eb00-0aa7-72a7-9b74-7002611212e8'
const GRACE = '01a1eb00-0bad-7460-965c-58793dc95bdd'
const nameOf = (id: string): string | undefined => ({ [ADA]: 'ada', [GRACE]: 'grace' })[id]

const entry = (action: AuditEntry['action'], target: AuditEntry['target']): AuditEntry => ({
  ...{ id: '1', at: '2026-01-01T00:00:00Z', actor_id: ADA, actor: 'ada', api_key_id: null },
  ...{ action, target, ip: '127.0.0.1', request_id: null },
})

const wordsOf = (action: AuditEntry['action'], target: AuditEntry['target']): string =>
  targetOf(entry(action, target), nameOf)

test('every action has words', () => {
  assert.deepEqual(Object.keys(ACTION_WORDS).sort(), [...AUDIT_ACTIONS].sort())
})

test('a target is told by names', () => {
  assert.equal(
    wordsOf('member.role_changed', { user_id: GRACE, from: 'user', to: 'org_admin' }),
    'grace, from user to org_admin',
  )
  assert.equal(wordsOf('api_key.revoked', { api_key_id: 'x', name: 'ci', prefix: 'sqk_1' }), 'ci, sqk_1')
  assert.equal(wordsOf('jobs.cancelled', { count: 1_200, job_ids: [] }), '1,200 jobs')
  assert.equal(wordsOf('member.invited', { user_id: null, role: 'user' }), 'whoever has the link, as user')
  assert.equal(wordsOf('queue.paused', { type: null }), 'all jobs')
  assert.equal(wordsOf('queue.paused', { type: 'http' }), 'jobs of type http')
})

test('what somebody did to themselves is not told twice', () => {
  assert.equal(wordsOf('account.signed_in', { user_id: ADA }), '')
})

test('what has no name is told by the end of its id', () => {
  assert.equal(wordsOf('member.invitation_revoked', { invitation_id: GRACE }), 'invitation 3dc95bdd')
  assert.equal(wordsOf('member.removed', { user_id: 'x-12345678', role: 'user' }), 'user 12345678, as user')
})

test('a limit that was taken away is told', () => {
  assert.equal(
    wordsOf('org.quotas_changed', { running_jobs: null, queued_jobs: 5_000 }).includes('no limit'),
    true,
  )
})

test('a weight is told with its decimals', () => {
  assert.equal(wordsOf('org.quotas_changed', { weight: 0.25 }), 'weight: 0.25')
})

test('without an actor it was an operator, but for a failed sign-in, where nobody knows', () => {
  const nobody = { actor: null, actor_id: null }
  assert.equal(actorOf({ ...entry('admin.granted', {}), ...nobody }), 'an operator')
  assert.equal(actorOf({ ...entry('account.sign_in_failed', {}), ...nobody }), 'somebody')
})

test('the command for a new key does what the key may', () => {
  const command = (scopes: string[]) => commandFor({ key: 'sqk_x', scopes }, 'https://q.example')
  assert.match(command(['jobs:read', 'jobs:submit']) ?? '', /-d '\{"name"/)
  assert.equal(command(['org:read']), "curl -s https://q.example/orgs/me -H 'authorization: Bearer sqk_x'")
  assert.equal(command(['queue:manage']), undefined)
})

test('a key ends after days, on a day, or not at all', () => {
  assert.equal(endOf('7', '', 0), '1970-01-08T00:00:00.000Z')
  assert.equal(endOf('date', '2030-01-01T00:00Z', 0), '2030-01-01T00:00:00.000Z')
  assert.equal(endOf('', '', 0), undefined)
})

test('limits of bytes are typed in MiB, and an empty field is no limit', () => {
  assert.equal(typedOf('payload_bytes_per_day', 53_687_091_200), '51200')
  assert.equal(limitOf('payload_bytes_per_day', '1.5'), 1_572_864)
  assert.equal(limitOf('running_jobs', ' '), null)
  assert.equal(limitOf('running_jobs', '-1'), undefined)
  assert.equal(limitOf('running_jobs', 'many'), undefined)
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { FUNCTIONS_ROLE, findRowSecurityFault, WORKERS_ROLE } from '../../db/queries/row-level-security.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { fromElsewhere, registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let folder: string
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  folder = await mkdtemp(join(tmpdir(), 'smartqueue-admin-'))
})
after(async () => {
  await edge.stop()
  await database.drop()
  await rm(folder, { recursive: true })
})

type Run = { code: number; out: string; err: string }

const admin = async (args: string[], options: { url?: string; input?: string } = {}): Promise<Run> => {
  const child = spawn(process.execPath, ['worker-runtime/admin/main.ts', ...args], {
    env: { ...process.env, DATABASE_URL: options.url ?? database.url, SMARTQUEUE_HOME: join(folder, 'home') },
  })
  child.stdin.end(options.input ?? '')
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, out: out.trim(), err: err.trim() }
}

const login = (username: string, password: string) =>
  edge.request('POST', '/auth/login', { json: { username, password }, headers: fromElsewhere() })

test('the first admin is made by a command, with a password that is shown once', async () => {
  assert.match((await admin(['list'])).out, /There is no admin yet/)
  const { code, out } = await admin(['create', 'root'])
  assert.equal(code, 0)
  const password = /shown only now: (\S+)/.exec(out)?.[1] ?? ''
  const signedIn = await login('root', password)
  assert.deepEqual([signedIn.status, signedIn.body.user.role], [200, 'admin'])
  assert.equal((await edge.request('GET', '/auth/users', { token: signedIn.body.access_token })).status, 200)
  assert.match((await admin(['list'])).out, /^root /)
  assert.match((await admin(['create', 'ROOT'])).err, /taken.*grant ROOT/)
})

test('a password can be given on the standard input, and is not printed', async () => {
  const { out } = await admin(['create', 'piped', '--password-stdin', '--json'], {
    input: 'a long password\n',
  })
  assert.deepEqual(Object.keys(JSON.parse(out)).sort(), ['user_id', 'username'])
  assert.equal((await login('piped', 'a long password')).status, 200)
  assert.match((await admin(['create', 'weak', '--password-stdin'], { input: 'short' })).err, /at least 8/)
  const common = await admin(['create', 'weak', '--password-stdin'], { input: 'password123\n' })
  assert.match(common.err, /most common passwords/)
})

test('a command creates an ordinary account, for when registration is closed', async () => {
  const { out } = await admin(['create', 'ordinary', '--user', '--password-stdin'], {
    input: 'a long password\n',
  })
  assert.match(out, /ordinary has an account/)
  assert.equal((await login('ordinary', 'a long password')).body.user.role, 'org_admin')
})

test('an account is made an admin and is one no more', async () => {
  const account = await registerUser(edge)
  assert.equal((await admin(['grant', account.username])).code, 0)
  const { body } = await login(account.username, account.password)
  const users = () => edge.request('GET', '/auth/users', { token: body.access_token })
  assert.equal((await users()).status, 200)
  assert.equal((await admin(['revoke', account.username])).code, 0)
  assertProblem(await users(), 403, 'forbidden')
  assert.match((await admin(['grant', 'nobody-here'])).err, /Nobody has the name/)
})

test('a lost password is replaced, and all sign-ins of the account end', async () => {
  const account = await registerUser(edge)
  const { out } = await admin(['password', account.username, '--json'])
  assertProblem(await edge.request('GET', '/jobs', { token: account.token }), 401, 'unauthenticated')
  assert.equal((await login(account.username, account.password)).status, 401)
  assert.equal((await login(account.username, JSON.parse(out).password)).status, 200)
})

test('logins for both runtimes are made, pass the inspection, get new passwords, and go', async () => {
  for (const [runtime, group] of [
    ['functions', FUNCTIONS_ROLE],
    ['workers', WORKERS_ROLE],
  ] as const) {
    const name = `test_admin_${process.pid}_${runtime}`
    const make = async (): Promise<string> =>
      JSON.parse((await admin(['database-login', runtime, '--login', name, '--json'])).out).database_url
    const faultOf = (url: string) =>
      withClient(url, async (client) => {
        const { text: query, values } = findRowSecurityFault(group)
        const { rows } = await client.query<{ fault: string | null }>(query, [...values])
        return rows[0]?.fault
      })
    const first = await make()
    assert.equal(await faultOf(first), null)
    const second = await make()
    await assert.rejects(faultOf(first), { code: '28P01' })
    assert.equal(await faultOf(second), null)
    assert.equal((await admin(['drop-login', name])).code, 0)
    await assert.rejects(faultOf(second), { code: '28P01' })
  }
  assert.match((await admin(['database-login', 'everyone'])).err, /functions or workers/)
})

test('signing keys are rotated in a file that only its owner reads', async () => {
  const file = join(folder, 'keys.json')
  const kids = async (): Promise<string[]> =>
    JSON.parse(await readFile(file, 'utf8')).keys.map(({ kid }: { kid: string }) => kid)
  await admin(['signing-key', '--file', file])
  const [first] = await kids()
  await admin(['signing-key', '--file', file])
  const [old, second] = await kids()
  assert.deepEqual([old, second === first], [first, false], 'the old one still signs')
  for (let twice = 0; twice < 2; twice++) {
    await admin(['signing-key', '--file', file, '--promote', second ?? ''])
    assert.deepEqual(await kids(), [second, first])
  }
  assert.match((await admin(['signing-key', '--file', file, '--promote', 'none'])).err, /no key none/)
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  await admin(['signing-key', '--file', file, '--retire'])
  assert.deepEqual(await kids(), [second])
  const printed = JSON.parse((await admin(['signing-key'])).out)
  assert.deepEqual([printed.keys.length, printed.keys[0].crv], [1, 'Ed25519'])
})

test('default quotas are shown and set', async () => {
  assert.match((await admin(['quotas'])).out, /submissions_per_minute = 1000000/)
  const { out } = await admin(['quotas', 'queued_jobs=10', 'submissions_per_minute=none', '--json'])
  assert.partialDeepStrictEqual(JSON.parse(out), {
    queued_jobs: 10,
    submissions_per_minute: null,
    running_jobs: null,
  })
  assert.match((await admin(['quotas', 'jobs=1'])).err, /is no quota: submissions_per_minute/)
  await admin(['quotas', 'queued_jobs=2000000', 'submissions_per_minute=1000000'])
})

test('organisations without quotas of their own get the default weight', async () => {
  const account = await registerUser(edge)
  const weightOf = async () =>
    (await edge.request('GET', '/orgs/me/quotas', { token: account.token })).body.weight
  assert.match((await admin(['quotas'])).out, /^weight = 1$/m)
  assert.equal(JSON.parse((await admin(['quotas', 'weight=0.5', '--json'])).out).weight, 0.5)
  assert.equal(await weightOf(), 0.5)
  for (const weight of ['0', '-1', '0.009', '101', 'none', 'heavy', '']) {
    const { code, err } = await admin(['quotas', 'queued_jobs=10', `weight=${weight}`])
    assert.equal(code, 1)
    assert.match(err, /weight must be a number from 0\.01 to 100/)
  }
  const { weight, queued_jobs } = JSON.parse((await admin(['quotas', 'weight=1', '--json'])).out)
  assert.deepEqual([weight, queued_jobs], [1, 2_000_000])
})

test('what cannot be done is said in one line', async () => {
  assert.match((await admin(['--help'])).out, /create USERNAME/)
  for (const [args, reason] of [
    [[], /Usage/],
    [['make'], /There is no command "make"/],
    [['create'], /Name the account/],
    [['create', 'x'], /3 to 64/],
  ] as const) {
    const { code, out, err } = await admin([...args])
    assert.equal(code, 1)
    assert.match(out + err, reason)
  }
  const away = await admin(['list'], { url: 'postgres://nobody@127.0.0.1:1/none' })
  assert.match(away.err, /cannot be reached/)
  assert.match((await admin(['list'], { url: '' })).err, /Start npm run dev first/)
})

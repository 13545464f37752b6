import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { fillTables } from '../support/every-table.ts'
import { seedTenant, type Tenant } from '../support/jobs.ts'
import { enterAs } from '../support/sessions.ts'

/** An attacker who can run any SQL as a login, and knows all ids of an organisation but none of its secrets. */

type Login = 'functions' | 'workers'

let database: TestDatabase
let victim: Tenant
let mallory: Tenant
let ids: { key: string; source: string; invitation: string; job: string }

const PARAMETERS = 'scrypt$14$8$5$c2FsdA=='
const SECRETS = { password: 'hash-of-a-password', webhook: 'secret-of-a-webhook' }

before(async () => {
  database = await createTestDatabase()
  victim = await seedTenant(database.run, 'victim')
  mallory = await seedTenant(database.run, 'mallory')
  await fillTables(database, victim)
  await database.sql('update smartqueue.users set password_hash = $2 where id = $1', [
    victim.userId,
    `${PARAMETERS}$${SECRETS.password}`,
  ])
  await database.sql('update smartqueue.webhook_sources set secret = $1, previous_secret = null', [
    SECRETS.webhook,
  ])
  const [row] = await database.sql<typeof ids>(`
    select
      (select id from smartqueue.api_keys) as key,
      (select id from smartqueue.webhook_sources) as source,
      (select id from smartqueue.invitations) as invitation,
      (select id from smartqueue.jobs limit 1) as job`)
  assert.ok(row)
  ids = row
})
after(() => database.drop())

/** Runs an attack in a transaction of a login, and undoes it. */
const attack = <T>(login: Login, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  withClient(asLogin(database.url, login), async (client) => {
    await client.query('begin; set local search_path = smartqueue')
    try {
      return await work(client)
    } finally {
      await client.query('rollback')
    }
  })

/**
 * Tables under row-level security in which the login sees a row of the victim. Leases mix organisations, and have ids only.
 * Workers run the jobs of everybody; of their tables only those with accounts and webhook sources count.
 */
const exposedTables = async (client: pg.Client, login: Login): Promise<string[]> => {
  const { rows: tables } = await client.query<{ text: string }>(
    `select
       format(
         'select %L as name where exists (select from (select %s from %s) t where to_jsonb(t)::text ~ $1)',
         c.relname, string_agg(quote_ident(a.attname), ', '), c.oid::regclass
       ) as text
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'smartqueue'::regnamespace
       and c.relrowsecurity
       and c.relname <> 'leases'
       and has_column_privilege(c.oid, a.attnum, 'select')
       and (
         $1 = 'functions'
         or c.relname in
           ('users', 'memberships', 'refresh_families', 'refresh_tokens', 'api_keys', 'invitations', 'audit_log', 'webhook_sources')
       )
     group by c.oid, c.relname`,
    [login],
  )
  const text = tables.map((table) => table.text).join(' union all ')
  if (text === '') return []
  const known = [victim.orgId, victim.userId, victim.sessionId, ...Object.values(SECRETS)].join('|')
  const { rows } = await client.query<{ name: string }>(text, [known])
  return rows.map(({ name }) => name)
}

const setAll = async (client: pg.Client): Promise<void> => {
  const content = `{${victim.orgId}}/${victim.userId}//t`
  const settings: Record<string, string> = {
    scope: `${'0'.repeat(64)}/${content}`,
    orgs: `{${victim.orgId}}`,
    all_orgs: 'on',
    user: victim.userId,
    session: victim.sessionId ?? '',
    key: ids.key,
    source: ids.source,
    name: 'victim',
    secret: '0'.repeat(64),
    ip: '10.0.0.1',
    request: 'forged',
  }
  for (const [name, value] of Object.entries(settings)) {
    await client.query('select set_config($1, $2, true)', [`smartqueue.${name}`, value])
  }
}

type Callable = { name: string; arguments: { name: string; type: string }[] }

const callableBy = (login: Login): Promise<Callable[]> =>
  database.sql<Callable>(
    `select
       p.proname as name,
       coalesce(
         (
           select jsonb_agg(jsonb_build_object('name', coalesce(p.proargnames[n], ''), 'type', format_type(type, null)) order by n)
           from unnest(p.proargtypes) with ordinality as argument (type, n)
         ),
         '[]'
       ) as arguments
     from pg_proc p
     where p.pronamespace = 'smartqueue'::regnamespace
       and p.prokind = 'f'
       and p.prorettype <> 'trigger'::regtype
       and has_function_privilege($1, p.oid, 'execute')
     order by p.proname`,
    [`test_${login}`],
  )

/** What the attacker knows, by the name of the parameter. */
const idFor = (name: string): string => {
  if (/org/.test(name)) return victim.orgId
  if (/user/.test(name)) return victim.userId
  if (/session|family/.test(name)) return victim.sessionId ?? ''
  if (/key/.test(name)) return ids.key
  if (/source/.test(name)) return ids.source
  if (/invitation/.test(name)) return ids.invitation
  return ids.job
}

const DEFAULTS: Record<string, string> = {
  integer: '1',
  bigint: '1',
  smallint: '1',
  boolean: 'true',
  'double precision': '1',
  real: '1',
  inet: '10.0.0.1',
  jsonb: '{}',
  xid8: '0',
  'timestamp with time zone': '2026-01-01T00:00:00Z',
}

const WORDS: Record<string, string> = { p_least_role: 'user', p_ip: '10.0.0.1', p_username: 'victim' }

/** `text` stands for every secret, hash and role: a wrong one, or none. */
const valueFor = (argument: Callable['arguments'][number], text: string | null): string | null => {
  const { name, type } = argument
  const item = type.replace('[]', '')
  const word = WORDS[name] ?? text
  const value = item === 'uuid' ? idFor(name) : item === 'text' ? word : (DEFAULTS[item] ?? null)
  return type.endsWith('[]') && value !== null ? `{${value}}` : value
}

/** The functions verify deliveries with the secret of a source, and find it by the unguessable id in its URL. */
const REVEALS = ['receiving_source']

for (const login of ['functions', 'workers'] as const) {
  for (const [what, text] of [
    ['wrong', '0'.repeat(64)],
    ['missing', null],
  ] as const) {
    test(`no function that ${login} may call opens an organisation for ids with ${what} secrets`, async () => {
      const callables = await callableBy(login)
      assert.ok(callables.length >= 10, callables.map(({ name }) => name).join())
      for (const { name, arguments: parameters } of callables) {
        await attack(login, async (client) => {
          await setAll(client)
          const list = parameters.map(({ type }, n) => `$${n + 1}::${type}`).join(', ')
          await client.query('savepoint call')
          const answer = await client
            .query(
              `select * from smartqueue.${name}(${list})`,
              parameters.map((parameter) => valueFor(parameter, text)),
            )
            .catch(async (error: { code: string; message: string }) => {
              // It has to refuse by itself, and not for arguments that it cannot have.
              assert.doesNotMatch(error.code, /^(42(?!501)|22P02)/, `${name}: ${error.message}`)
              await client.query('rollback to savepoint call')
              return { rows: [] }
            })
          const told = Object.values(SECRETS).filter((secret) => JSON.stringify(answer.rows).includes(secret))
          assert.deepEqual(told, REVEALS.includes(name) ? [SECRETS.webhook] : [], name)
          assert.deepEqual(await exposedTables(client, login), [], name)
        })
      }
    })
  }
}

test('an organisation is open to whoever has the secret of a session, and to nobody with another', async () => {
  await attack('functions', async (client) => {
    await enterAs(client, victim)
    const open = await exposedTables(client, 'functions')
    for (const table of ['jobs', 'users', 'orgs', 'webhook_sources', 'audit_log'])
      assert.ok(open.includes(table), table)
  })
  const forged: Tenant[] = [
    { ...victim, secret: mallory.secret },
    { ...victim, secret: '' },
    { ...victim, sessionId: mallory.sessionId, secret: mallory.secret },
    { ...mallory, orgId: victim.orgId },
    { ...victim, sessionId: null, keyId: ids.key, secret: '00' },
    { ...victim, keyId: ids.key },
  ]
  for (const member of forged) {
    await attack('functions', (client) => assert.rejects(enterAs(client, member), { code: 'SQ401' }))
  }
})

test('an API key opens its organisation to whoever has its hash', async () => {
  const [key] = await database.sql<{ hash: string }>(
    `select encode(key_hash, 'hex') as hash from smartqueue.api_keys where id = $1`,
    [ids.key],
  )
  await attack('functions', async (client) => {
    await enterAs(client, { ...victim, sessionId: null, keyId: ids.key, secret: key?.hash ?? '' })
    assert.ok((await exposedTables(client, 'functions')).includes('jobs'))
  })
})

const signedScope = async (client: pg.Client): Promise<string> =>
  (await client.query(`select current_setting('smartqueue.scope') as scope`)).rows[0].scope

const open = async (client: pg.Client, scope: string): Promise<string[]> => {
  await client.query(`select set_config('smartqueue.scope', $1, true)`, [scope])
  return exposedTables(client, 'functions')
}

test('a signed scope is worth nothing in another transaction, in another process, or changed', async () => {
  await attack('functions', async (client) => {
    await enterAs(client, victim)
    const captured = await signedScope(client)
    assert.notDeepEqual(await open(client, captured), [], 'where it was signed it is good')
    await attack('functions', async (other) => assert.deepEqual(await open(other, captured), []))
    await client.query('rollback')
    await client.query('begin')
    assert.deepEqual(await open(client, captured), [])
    await client.query('rollback')
    await client.query('begin')
    await enterAs(client, mallory)
    const own = await signedScope(client)
    assert.deepEqual(await open(client, own.replace(mallory.orgId, victim.orgId)), [])
    assert.deepEqual(await open(client, own.replace(mallory.userId, victim.userId)), [])
    assert.deepEqual(await open(client, own.replace(/f$/, 't')), [])
    assert.deepEqual(await open(client, captured.slice(0, 64) + own.slice(64)), [])
    assert.deepEqual(await open(client, ''), [])
  })
})

test('the signature is HMAC-SHA-256 over the scope, the start of the transaction and the process', async () => {
  const [key] = await database.sql<{ outer_block: Buffer }>(
    'select outer_block from smartqueue.scope_signing_key',
  )
  await attack('functions', async (client) => {
    await enterAs(client, victim)
    const { rows } = await client.query(
      'select extract(epoch from now()) as started, pg_backend_pid() as process',
    )
    const [signature, ...content] = (await signedScope(client)).split('/')
    const message = ['scope', rows[0].started, rows[0].process, ...content].join('/')
    const secret = Buffer.from(key?.outer_block.subarray(0, 32).map((byte) => byte ^ 0x5c) ?? [])
    assert.equal(createHmac('sha256', secret).update(message).digest('hex'), signature)
  })
})

test('no login may sign a scope or read the key, a password, a token or the hash of a secret', async () => {
  for (const login of ['functions', 'workers'] as const) {
    for (const statement of [
      'select * from smartqueue.scope_signing_key',
      'select smartqueue.set_scope(null)',
      `select smartqueue.scope_signature('', '', '')`,
      'select smartqueue.role_in(null, null, null, null, null)',
      'select password_hash from smartqueue.users',
      'select token_hash from smartqueue.refresh_tokens',
      'select secret_hash from smartqueue.refresh_families',
      'select key_hash from smartqueue.api_keys',
      'select token_hash from smartqueue.invitations',
    ]) {
      await attack(login, (client) => assert.rejects(client.query(statement), { code: '42501' }, statement))
    }
  }
})

test('the parameters of a password are known by name, and only its hash opens a session', async () => {
  await attack('functions', async (client) => {
    const { rows } = await client.query(`select * from begin_sign_in('Victim', null, 1, 1)`)
    assert.equal(rows[0].password_parameters, PARAMETERS)
  })
  const start = `select * from smartqueue.start_session(
    $1, $2, gen_random_uuid(), repeat('0', 64), repeat('1', 64), 1, gen_random_uuid(), null, null, null)`
  await attack('functions', async (client) => {
    assert.equal((await client.query(start, ['victim', `${PARAMETERS}$guessed`])).rowCount, 0)
    assert.equal((await client.query(start, ['victim', PARAMETERS])).rowCount, 0)
    assert.equal((await client.query(start, ['victim', `${PARAMETERS}$${SECRETS.password}`])).rowCount, 1)
  })
})

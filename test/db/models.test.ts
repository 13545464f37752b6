import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { crownModel, listModels, rollBackModel, storeChallenger } from '../../db/queries/models.ts'
import { getModelWeights } from '../../db/queries/prediction-inputs.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, lead } from '../support/jobs.ts'

let database: TestDatabase
let term: string

before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql('truncate models, accuracy_points')
  term = await lead(database.run)
  await database.run(crownModel({ term, version: 1, weights: 'AAAA' }))
})

const ACCURACY = { errors: { smartqueue: 0.2 }, coverage: 0.91, mape: 20, drift: 0.1, executions: 300 }
const judge = (version: number, against: number, promoted: boolean, onlyOrg: string | null = null) =>
  database.run(
    storeChallenger({
      ...{ term, version, against, promoted, trainedOn: 10 * version, onlyOrg },
      evaluation: { kind: promoted ? 'promoted' : 'rejected', against },
      weights: promoted ? 'AAAA' : null,
      accuracy: promoted ? ACCURACY : undefined,
    }),
  )
const statuses = async () =>
  (
    await database.sql<{ said: string }>(
      `select version || ' ' || status as said from models order by version`,
    )
  ).map(({ said }) => said)

test('a promoted version is the one champion, and a point of the learning curve', async () => {
  assert.deepEqual(await judge(2, 1, false), [{ version: 2 }])
  assert.deepEqual(await judge(3, 1, true), [{ version: 3 }])
  assert.deepEqual(await statuses(), ['1 retired', '2 rejected', '3 champion'])
  const [row] = await database.sql(
    `select parent, trained_on::int, evaluation, decided_at is not null as decided from models where version = 3`,
  )
  const evaluation = { kind: 'promoted', against: 1 }
  assert.deepEqual(row, { parent: 1, trained_on: 30, evaluation, decided: true })
  const points = await database.sql('select model_version, accuracy from accuracy_points')
  assert.deepEqual(points, [{ model_version: 3, accuracy: ACCURACY }])
})

test('a version knows the one organisation that it was trained on', async () => {
  const org = '00000000-0000-7000-8000-000000000001'
  await judge(2, 1, true, org)
  await judge(3, 2, true)
  const versions = await database.run(listModels())
  assert.deepEqual(
    versions.map(({ version, only_org }) => [version, only_org]),
    [
      [3, null],
      [2, org],
      [1, null],
    ],
  )
  assert.equal((await database.run(getModelWeights(2)))[0]?.only_org, org)
})

test('a decision counts once, and only against the champion', async () => {
  await judge(2, 1, true)
  assert.deepEqual(await judge(2, 1, true), [], 'it is known')
  assert.deepEqual(await judge(3, 1, true), [], 'version 1 is not the champion')
  assert.deepEqual(await judge(1, 2, true), [], 'the number was given before')
  assert.deepEqual(await statuses(), ['1 retired', '2 champion'])
})

test('a version that is rolled back gives its place to the one before, and both verdicts are kept', async () => {
  await judge(2, 1, true)
  const back = { term, version: 2, against: 1, evaluation: { kind: 'rolled_back', z: 3 } }
  assert.deepEqual(await database.run(rollBackModel(back)), [{ version: 1 }])
  assert.deepEqual(await database.run(rollBackModel(back)), [])
  assert.deepEqual(await statuses(), ['1 champion', '2 rolled_back'])
  const [row] = await database.sql('select evaluation from models where version = 2')
  const promotion = { kind: 'promoted', against: 1 }
  assert.deepEqual(row, { evaluation: { kind: 'rolled_back', z: 3, promotion } })
  const order = (await database.run(listModels())).map(({ version }) => version)
  assert.deepEqual(order, [1, 2])
})

test('there is no way back to a version whose weights are gone', async () => {
  await judge(2, 1, true)
  await database.sql('update models set weights = null where version = 1')
  assert.deepEqual(await database.run(rollBackModel({ term, version: 2, against: 1, evaluation: {} })), [])
  assert.deepEqual(await statuses(), ['1 retired', '2 champion'])
})

test('the weights of twenty versions and five hundred versions are kept, and always the champion', async () => {
  await database.sql(`insert into models (version, status, weights, trained_on)
    select n, case n % 2 when 0 then 'retired' else 'rejected' end, case n % 2 when 0 then '\\x00'::bytea end, n
    from generate_series(2, 601) n`)
  await judge(602, 1, false)
  const kept = () =>
    database.sql(
      `select count(*)::int as versions, count(weights)::int as weights, min(version) as oldest from models`,
    )
  // The champion is the oldest by far. One of those whose weights go now is left, as it still had them.
  const [first] = await kept()
  assert.deepEqual([first?.weights, first?.oldest], [19, 1])
  await judge(603, 1, false)
  assert.deepEqual(await kept(), [{ versions: 501, weights: 19, oldest: 1 }])
  await judge(604, 1, true)
  assert.deepEqual(await kept(), [{ versions: 501, weights: 20, oldest: 1 }])
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'

const BIOME = join(
  dirname(createRequire(import.meta.url).resolve('@biomejs/biome/package.json')),
  'bin/biome',
)

/** file, what it imports, and the reason it is refused for; none if it is allowed. */
const RULES: [string, string, RegExp | undefined][] = [
  ['db/queries/a.ts', 'pg', /each runtime brings its own driver/],
  ['db/queries/b.ts', '@neondatabase/serverless', /each runtime brings its own driver/],
  ['db/rules/c.ts', '../../functions/app.ts', /db\/ is the contract between both runtimes/],
  ['db/rules/d.ts', '../../worker-runtime/worker.ts', /db\/ is the contract between both runtimes/],
  ['db/rules/e.ts', 'node:fs', /Node\.js/],
  ['db/rules/f.ts', '../query.ts', undefined],
  ['functions/jobs/a.ts', '../../worker-runtime/worker.ts', /shares only db\//],
  ['functions/jobs/b.ts', 'pg', /@neondatabase\/serverless/],
  ['functions/jobs/c.ts', 'node:fs', /Only node:crypto/],
  ['functions/jobs/d.ts', 'node:crypto', undefined],
  ['functions/jobs/e.ts', '../../db/query.ts', undefined],
  ['functions/jobs/f.ts', '../../test/support/edge.ts', /shares only db\//],
  ['worker-runtime/a.ts', '../functions/app.ts', /The pods share only db\//],
  ['worker-runtime/b.ts', '../functions/prediction/lstm/network.ts', undefined],
  ['worker-runtime/c.ts', '../db/query.ts', undefined],
  ['worker-runtime/local/d.ts', '../../test/support/edge.ts', /never imports from test\//],
  ['worker-runtime/e.ts', '@neondatabase/serverless', /over TCP with pg/],
  ['worker-runtime/handlers/a.ts', '../worker.ts', /the handler API only/],
  ['worker-runtime/handlers/b.ts', '../../db/query.ts', /the handler API only/],
  ['worker-runtime/handlers/c.ts', 'pg', /no connection of its own/],
  ['worker-runtime/handlers/d.ts', '../handler-api.ts', undefined],
  ['worker-runtime/handlers/e.ts', 'zod', undefined],
  ['worker-runtime/handlers/etl/a.ts', '../../handler-api.ts', undefined],
  ['worker-runtime/handlers/etl/b.ts', '../sources/csv.ts', undefined],
  ['worker-runtime/handlers/etl/c.ts', '../../../db/rules/paths.ts', undefined],
  ['worker-runtime/handlers/etl/d.ts', '../../../db/queries/etl.ts', undefined],
  ['worker-runtime/handlers/etl/e.ts', '../../../db/queries/jobs.ts', /the handler API only/],
  ['worker-runtime/handlers/etl/f.ts', '../../worker.ts', /the handler API only/],
  ['worker-runtime/handlers/etl/g.ts', '../../database.ts', /the handler API only/],
  ['worker-runtime/handlers/etl/h.ts', 'pg', /no connection of its own/],
  ['worker-runtime/handlers/ml/a.ts', '../../../functions/prediction/lstm/trainer.ts', undefined],
  ['worker-runtime/handlers/ml/b.ts', '../../learning/wasm-backend.ts', undefined],
  ['worker-runtime/handlers/ml/c.ts', '../../learning/tournament.ts', /the handler API only/],
  ['worker-runtime/handlers/ml/d.ts', '../../../functions/prediction/inputs.ts', /the handler API only/],
  ['worker-runtime/handlers/ml/e.ts', '../etl/run.ts', /the handler API only/],
]

let folder: string
let reports: Map<string, string[]>

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'smartqueue-imports-'))
  copyFileSync('biome.json', join(folder, 'biome.json'))
  for (const [file, imported] of RULES) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    writeFileSync(join(folder, file), `import { x } from '${imported}'\n\nexport const y = x\n`)
  }
  const flags = ['lint', '--vcs-enabled=false', '--max-diagnostics=none', '--colors=off']
  const { stderr, stdout } = spawnSync(process.execPath, [BIOME, ...flags], { cwd: folder, encoding: 'utf8' })
  // Each diagnostic starts with `path:line:column rule`.
  const diagnostics = (stdout + stderr).split(/^(?=\S+\.ts:\d+:\d+ )/m)
  reports = Map.groupBy(diagnostics, (text) => text.split(':')[0] ?? '')
})
after(() => rmSync(folder, { recursive: true, force: true }))

for (const [file, imported, reason] of RULES) {
  test(`${file} ${reason ? 'may not' : 'may'} import ${imported}`, () => {
    const report = (reports.get(file) ?? []).join('')
    if (reason) assert.match(report, reason)
    else assert.equal(report, '')
  })
}

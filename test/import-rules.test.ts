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
  ['db/rules/g.ts', 'croner', undefined],
  ['functions/jobs/a.ts', '../../worker-runtime/worker.ts', /shares only db\//],
  ['functions/jobs/b.ts', 'pg', /@neondatabase\/serverless/],
  ['functions/jobs/c.ts', 'node:fs', /Only node:crypto/],
  ['functions/jobs/d.ts', 'node:crypto', undefined],
  ['functions/jobs/e.ts', '../../db/query.ts', undefined],
  ['functions/jobs/f.ts', '../../test/support/edge.ts', /shares only db\//],
  ['functions/dashboard/a.ts', '../../db/rules/roles.ts', undefined],
  ['functions/dashboard/b.ts', '../auth/permissions.ts', undefined],
  ['functions/dashboard/c.ts', '../../db/queries/jobs.ts', /runs in a browser/],
  ['functions/dashboard/d.ts', 'zod', /runs in a browser/],
  ['functions/dashboard/e.ts', 'node:crypto', /Node\.js/],
  ['functions/dashboard/build.ts', 'node:fs', undefined],
  ['functions/build/a.ts', 'node:fs', undefined],
  ['worker-runtime/a.ts', '../functions/app.ts', /The pods share only db\//],
  ['worker-runtime/b.ts', '../functions/prediction/lstm/network.ts', undefined],
  ['worker-runtime/f.ts', '../functions/prediction/job-predictions.ts', undefined],
  ['worker-runtime/g.ts', '../functions/jobs/submission.ts', /the predictor in functions\/prediction\//],
  ['worker-runtime/h.ts', '../functions/tracing/otel-settings.ts', undefined],
  ['worker-runtime/c.ts', '../db/query.ts', undefined],
  ['worker-runtime/local/d.ts', '../../test/support/edge.ts', /never imports from test\//],
  ['worker-runtime/e.ts', '@neondatabase/serverless', /over TCP with pg/],
  ['worker-runtime/handlers/a.ts', '../worker.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/b.ts', '../../db/query.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/c.ts', 'pg', /no connection of its own/],
  ['worker-runtime/handlers/d.ts', '../handler-api.ts', undefined],
  ['worker-runtime/handlers/e.ts', 'zod', undefined],
  ['worker-runtime/handlers/f.ts', './shared/g.ts', undefined],
  ['worker-runtime/handlers/g.ts', '../../db/rules/roles.ts', undefined],
  ['worker-runtime/handlers/i.ts', '../../db/queries/jobs.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/j.ts', '../../functions/prediction/lstm/network.ts', undefined],
  ['worker-runtime/handlers/k.ts', '../../functions/app.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/l.ts', '../learning/wasm-backend.ts', undefined],
  ['worker-runtime/handlers/m.ts', '../learning/duty.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/own/a.ts', '../../worker.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/own/b.ts', '../../../db/query.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/own/c.ts', 'pg', /no connection of its own/],
  ['worker-runtime/handlers/own/d.ts', '../../handler-api.ts', undefined],
  ['worker-runtime/handlers/own/e.ts', './f.ts', undefined],
  ['worker-runtime/handlers/own/f.ts', '../shared/g.ts', undefined],
  ['worker-runtime/handlers/own/g.ts', '../../../db/rules/roles.ts', undefined],
  ['worker-runtime/handlers/own/i.ts', '../../../db/queries/jobs.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/own/j.ts', '../../../functions/prediction/lstm/network.ts', undefined],
  ['worker-runtime/handlers/own/k.ts', '../../../functions/app.ts', /A handler sees the handler API/],
  ['worker-runtime/handlers/own/l.ts', '../../learning/wasm-backend.ts', undefined],
  ['worker-runtime/handlers/own/m.ts', '../../learning/duty.ts', /A handler sees the handler API/],
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

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Manifest } from '../support/kustomize.ts'
import { builds } from '../support/manifests.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

test('every manifest has the fields of its kind and no others', async () => {
  const manifests = builds().flatMap(([, built]) => built)
  const faults = await checkTypes([...new Set(manifests.map(declare))])
  assert.deepEqual(faults, [])
})

test('a field that is made up is refused, also in a kind that is not of Kubernetes', async () => {
  const budget = { maxUnavailable: 1, minimumAvailable: 1 }
  const scaling = { scaleTargetRef: { name: 'a' }, triggers: [], fallback: { failures: 1 } }
  const faults = await checkTypes([
    declare({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'a' }, spec: budget }),
    declare({ apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', metadata: { name: 'a' }, spec: scaling }),
    declare({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' }, spec: { replicas: '1' } }),
  ])
  assert.match(faults[0] ?? '', /minimumAvailable.* does not exist/)
  assert.match(faults[1] ?? '', /failures.* does not exist/)
  assert.match(faults[2] ?? '', /'string' is not assignable to type 'number'/)
})

/** Packages of types, by API group; all others are Kubernetes' own. */
const PACKAGES: Record<string, string> = {
  'keda.sh': '@kubernetes-models/keda',
  'cert-manager.io': '@kubernetes-models/cert-manager',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
}

/** A constant of the type of its kind: TypeScript refuses what is too much in a literal. */
const declare = (manifest: Manifest): string => {
  const { apiVersion, kind } = manifest
  const [group = ''] = apiVersion.split('/')
  const type = `import('${PACKAGES[group] ?? 'kubernetes-models'}/${apiVersion}').I${kind}`
  return `: ${type}${NEWER[kind] ?? ''} = ${JSON.stringify(manifest)}`
}

/** What the packages do not know yet. */
const NEWER: Record<string, string> = {
  // KEDA 2.17 and newer.
  ScaledObject: " & { spec: { fallback?: { behavior?: 'currentReplicasIfHigher' } } }",
}

/** What the compiler says of each, a line for each fault. */
const checkTypes = async (declarations: string[]): Promise<string[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'smartqueue-types-'))
  try {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    const compilerOptions = {
      ...{ module: 'nodenext', target: 'es2024', lib: ['es2024'], strict: true, noEmit: true },
      ...{ exactOptionalPropertyTypes: true, skipLibCheck: true, types: [] },
    }
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }))
    const source = declarations.map((declaration, i) => `export const manifest${i}${declaration}\n`)
    await writeFile(join(folder, 'all.ts'), source.join(''))
    const output = await new Promise<string>((resolve) => {
      execFile(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], (_, stdout, stderr) =>
        resolve(stdout + stderr),
      )
    })
    return output.split('\n').filter((line) => line !== '')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

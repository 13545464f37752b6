import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { parseAllDocuments, stringify } from 'yaml'
import { buildFolder, idOf, type Manifest, splitImage } from '../support/kustomize.ts'
import { K8S, OVERLAYS, SCALERS, withScaler } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'smartqueue-kustomize-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const write = (files: Record<string, string>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

const HEAD = 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n'
const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
  namespace: here
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
        - name: app
          image: localhost:5000/app:1
          args: [a, b]
          env: [{name: A, value: "1"}, {name: B, value: "2"}]
          envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: passwords}}]
          ports: [{name: http, containerPort: 80}]
      volumes:
        - name: passwords
          secret: {secretName: passwords}
`

/** Everything that the builder can do, at once. */
const writeFixture = (): void => {
  write({
    'base/kustomization.yaml': `${HEAD}resources: [app.yaml]
labels: [{pairs: {part: of}, includeTemplates: true}]
configMapGenerator: [{name: settings, namespace: here, literals: [A=1, "B=<&>", 'C="quoted"']}]
`,
    'base/app.yaml': DEPLOYMENT,
    'part/kustomization.yaml': `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [service.yaml]
patches: [{patch: '[{"op": "add", "path": "/spec/replicas", "value": 2}]', target: {kind: Deployment, name: a.*}}]
`,
    'part/service.yaml':
      'apiVersion: v1\nkind: Service\nmetadata: {name: app, namespace: here}\nspec: {ports: [{port: 80}]}\n',
    'over/kustomization.yaml': `${HEAD}resources: [../base]
components: [../part]
configMapGenerator:
  - {name: settings, namespace: here, behavior: merge, literals: [A=3]}
  - {name: fixed, namespace: here, files: [key=text.txt, text.txt], options: {disableNameSuffixHash: true}}
secretGenerator: [{name: passwords, namespace: here, literals: [LONG=${'long '.repeat(30)}, P=q]}]
patches: [{path: patch.yaml}]
images: [{name: localhost:5000/app, newName: ghcr.io/app, newTag: 1.2.3}]
`,
    'over/text.txt': 'lines\nof text\n',
    'over/patch.yaml': `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: here, annotations: {note: patched}}
spec:
  revisionHistoryLimit: 5
  template:
    spec:
      containers:
        - name: app
          args: [c]
          env: [{name: A, value: "9"}, {name: C, value: "3"}, {name: B, $patch: delete}]
          ports: [{containerPort: 81}]
        - {name: beside, image: beside}
`,
  })
}

test('resources, generators, components, patches, labels and images come together', () => {
  writeFixture()
  const built = buildFolder(join(folder, 'over'))
  const app = built.find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { replicas: number; template: { metadata: object; spec: { containers: object[] } } }
  }
  const settings = built.find(({ metadata }) => metadata.name.startsWith('settings-'))
  assert.deepEqual(settings?.data, { A: '3', B: '<&>', C: 'quoted' })
  assert.equal(app.spec.replicas, 2)
  assert.deepEqual(app.spec.template.metadata, { labels: { app: 'app', part: 'of' } })
  const passwords = built.find(({ kind }) => kind === 'Secret')?.metadata.name
  assert.deepEqual(app.spec.template.spec.containers[0], {
    name: 'app',
    image: 'ghcr.io/app:1.2.3',
    args: ['c'],
    env: [
      { name: 'A', value: '9' },
      { name: 'C', value: '3' },
    ],
    envFrom: [{ configMapRef: { name: settings?.metadata.name } }, { secretRef: { name: passwords } }],
    ports: [{ containerPort: 81 }, { name: 'http', containerPort: 80 }],
  })
})

test('what the builder does not know, or is for nothing, is refused', () => {
  const refused = (text: string, reason: RegExp): void => {
    write({ 'bad/kustomization.yaml': HEAD + text, 'bad/app.yaml': DEPLOYMENT })
    assert.throws(() => buildFolder(join(folder, 'bad')), reason)
  }
  refused('namePrefix: a-\n', /namePrefix is not known/)
  refused('resources: [app.yaml, app.yaml]\n', /app is there twice/)
  refused('resources: [app.yaml]\npatches: [{target: {kind: Job}, patch: "[]"}]\n', /for nothing/)
  refused(
    'resources: [app.yaml]\npatches: [{target: {kind: Deployment}, patch: \'[{"op": "replace", "path": "/spec/replicas", "value": 1}]\'}]\n',
    /is not there/,
  )
  refused('configMapGenerator: [{name: a, behavior: merge}]\n', /not there/)
  refused('components: [../base]\n', /is no Component/)
  assert.deepEqual(splitImage('host:5000/a/b@sha256:00'), ['host:5000/a/b', '@sha256:00'])
})

/** Those of kubectl before 1.25 know no components as they are today. */
const kustomize = /Kustomize Version: v5/.test(
  String(spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' }).stdout),
)

test('kustomize itself builds the same', { skip: !kustomize && 'kubectl is not installed' }, () => {
  writeFixture()
  for (const scaler of SCALERS) {
    const { resources = [], components = [], images } = withScaler(scaler)
    // kustomize takes no absolute paths.
    const from = (path: string): string => join('../'.repeat(10), K8S, path)
    const text = stringify({ images, resources: resources.map(from), components: components.map(from) })
    write({ [`${scaler}/kustomization.yaml`]: HEAD + text })
  }
  const folders = [
    ...OVERLAYS.map((name) => join(K8S, 'overlays', name)),
    ...['over', ...SCALERS].map((name) => join(folder, name)),
  ]
  for (const one of folders) {
    const printed = execFileSync('kubectl', ['kustomize', '--load-restrictor=LoadRestrictionsNone', one], {
      encoding: 'utf8',
    })
    const theirs = parseAllDocuments(printed).map((document) => document.toJS() as Manifest)
    assert.deepEqual(byId(buildFolder(one)), byId(theirs), one)
  }
})

const byId = (manifests: Manifest[]): Record<string, Manifest> =>
  Object.fromEntries(manifests.map((manifest) => [idOf(manifest).join(' '), manifest]))

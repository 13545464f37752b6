/**
 * Builds a kustomization as kustomize 5 does, as far as k8s/ uses it, and refuses what it does not know: a manifest is tested as
 * it would be applied, on machines that have no kustomize. Where kubectl is installed a test compares the two.
 */
import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import { addHashes, type GeneratorArgs, generate } from './kustomize-generators.ts'
import { applyPatch, type Patch } from './kustomize-patches.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Manifest = {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
} & { [key: string]: Json }

/** A manifest under way: what was generated gets a hash at its name when all is done. */
export type Draft = { manifest: Manifest; generated: boolean }

type LabelArgs = { pairs: Record<string, string>; includeTemplates?: boolean }
type ImageArgs = { name: string; newName?: string; newTag?: string; digest?: string }

export type Kustomization = {
  apiVersion?: string
  kind?: string
  resources?: string[]
  components?: string[]
  configMapGenerator?: GeneratorArgs[]
  secretGenerator?: GeneratorArgs[]
  labels?: LabelArgs[]
  patches?: Patch[]
  images?: ImageArgs[]
}

const FIELDS = [
  ...['apiVersion', 'kind', 'resources', 'components', 'configMapGenerator', 'secretGenerator'],
  ...['labels', 'patches', 'images'],
]
const API_VERSIONS: Record<string, string> = {
  Kustomization: 'kustomize.config.k8s.io/v1beta1',
  Component: 'kustomize.config.k8s.io/v1alpha1',
}

/** What `kubectl kustomize <folder>` prints, in another order. */
export const buildFolder = (folder: string): Manifest[] => finish(buildDrafts(folder, 'Kustomization', []))

/** The same for a kustomization that is in no file, with paths from `folder`. */
export const buildInline = (folder: string, kustomization: Kustomization): Manifest[] =>
  finish(run(folder, kustomization, []))

const finish = (drafts: Draft[]): Manifest[] => {
  addHashes(drafts)
  return drafts.map(({ manifest }) => manifest)
}

const buildDrafts = (folder: string, kind: string, drafts: Draft[]): Draft[] => {
  const file = join(folder, 'kustomization.yaml')
  const kustomization = parse(readFileSync(file, 'utf8')) as Kustomization
  knowAll(file, kustomization, FIELDS)
  if (kustomization.kind !== kind || kustomization.apiVersion !== API_VERSIONS[kind])
    throw new Error(`${file} is no ${kind} of ${API_VERSIONS[kind]}`)
  return run(folder, kustomization, drafts)
}

/** Resources, generators, components, then what changes them all: the order is kustomize's. */
const run = (folder: string, kustomization: Kustomization, before: Draft[]): Draft[] => {
  let drafts = before
  for (const path of kustomization.resources ?? [])
    drafts = addAll(drafts, readResource(resolve(folder, path)))
  for (const args of kustomization.configMapGenerator ?? []) generate(drafts, 'ConfigMap', args, folder)
  for (const args of kustomization.secretGenerator ?? []) generate(drafts, 'Secret', args, folder)
  for (const path of kustomization.components ?? [])
    drafts = buildDrafts(resolve(folder, path), 'Component', drafts)
  for (const patch of kustomization.patches ?? []) applyPatch(drafts, patch, folder)
  for (const { manifest } of drafts) {
    for (const labels of kustomization.labels ?? []) addLabels(manifest, labels)
    for (const image of kustomization.images ?? []) setImage(manifest, image)
  }
  return drafts
}

const readResource = (path: string): Draft[] =>
  statSync(path).isDirectory()
    ? buildDrafts(path, 'Kustomization', [])
    : readManifests(path).map((manifest) => ({ manifest, generated: false }))

export const readManifests = (file: string): Manifest[] =>
  parseAllDocuments(readFileSync(file, 'utf8')).map((document) => {
    const [fault] = document.errors
    if (fault) throw new Error(`${file}: ${fault.message}`)
    const manifest = document.toJS() as Manifest
    if (!manifest?.kind || !manifest.apiVersion || !manifest.metadata?.name)
      throw new Error(`${file} has a document without apiVersion, kind or name`)
    return manifest
  })

const addAll = (drafts: Draft[], more: Draft[]): Draft[] => {
  for (const { manifest } of more) {
    const twin = drafts.find((one) => isDeepStrictEqual(idOf(one.manifest), idOf(manifest)))
    if (twin) throw new Error(`${idOf(manifest).join(' ')} is there twice`)
  }
  return [...drafts, ...more]
}

export const idOf = ({ apiVersion, kind, metadata }: Manifest): string[] => [
  apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '',
  kind,
  metadata.namespace ?? '',
  metadata.name,
]

type WithTemplate = { spec?: { template?: Labelled; volumeClaimTemplates?: Labelled[] } }
type Labelled = { metadata?: { labels?: Record<string, string> } }

const addLabels = (manifest: Manifest, args: LabelArgs): void => {
  knowAll('labels', args, ['pairs', 'includeTemplates'])
  const label = (one: Labelled): void => {
    one.metadata = { ...one.metadata, labels: { ...one.metadata?.labels, ...args.pairs } }
  }
  label(manifest)
  if (!args.includeTemplates) return
  const { spec } = manifest as WithTemplate
  if (spec?.template && Object.hasOwn(WITH_TEMPLATE, manifest.kind)) label(spec.template)
  for (const claim of spec?.volumeClaimTemplates ?? []) label(claim)
}

const WITH_TEMPLATE = { Deployment: true, StatefulSet: true, Job: true }

type Container = { image?: string }
type WithContainers = {
  spec?: { template?: { spec?: { containers?: Container[]; initContainers?: Container[] } } }
}

const setImage = (manifest: Manifest, args: ImageArgs): void => {
  knowAll('images', args, ['name', 'newName', 'newTag', 'digest'])
  const { containers = [], initContainers = [] } = (manifest as WithContainers).spec?.template?.spec ?? {}
  for (const container of [...containers, ...initContainers]) {
    const [name, pinned = ''] = splitImage(container.image ?? '')
    if (name !== args.name) continue
    const pin = args.digest ? `@${args.digest}` : args.newTag ? `:${args.newTag}` : pinned
    container.image = `${args.newName ?? name}${pin}`
  }
}

/** The name, and `:tag` or `@digest`. A colon before a slash is that of a port. */
export const splitImage = (image: string): [string, string] => {
  const [, name = image, pinned = ''] = /^(.+?)((?::[^/@]+)?(?:@.+)?)$/.exec(image) ?? []
  return [name, pinned]
}

export const knowAll = (where: string, given: object, known: string[]): void => {
  const unknown = Object.keys(given).filter((key) => !known.includes(key))
  if (unknown.length > 0) throw new Error(`${where}: ${unknown.join(', ')} is not known here`)
}

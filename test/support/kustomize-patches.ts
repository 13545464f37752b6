import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type Draft, idOf, type Json, knowAll, type Manifest } from './kustomize.ts'

export type Patch = { path?: string; patch?: string; target?: Target }
type Target = { group?: string; version?: string; kind?: string; name?: string; namespace?: string }
type Step = { op: string; path: string; value?: Json }
type JsonObject = { [key: string]: Json }

/** Strategic merges, and lists of steps as RFC 6902 has them. A patch that changes nothing is a mistake. */
export const applyPatch = (drafts: Draft[], patch: Patch, folder: string): void => {
  knowAll('patches', patch, ['path', 'patch', 'target'])
  const text = patch.path ? readFileSync(join(folder, patch.path), 'utf8') : (patch.patch ?? '')
  const content = parse(text) as Manifest | Step[]
  const isMeant = patch.target ? matches(patch.target) : hasIdOf(content)
  const meant = drafts.filter(({ manifest }) => isMeant(manifest))
  if (meant.length === 0) throw new Error(`A patch is for nothing that is there: ${text.slice(0, 200)}`)
  for (const { manifest } of meant) {
    if (Array.isArray(content)) for (const step of content) applyStep(manifest, step)
    else merge(manifest, { ...content, ...identityOf(manifest, content) }, manifest.kind)
  }
}

/** A patch names whom it is for, or anything if a target says that. It changes neither. */
const identityOf = ({ apiVersion, kind, metadata }: Manifest, patch: Manifest): JsonObject => {
  const { name, namespace } = metadata
  return { apiVersion, kind, metadata: { ...patch.metadata, name, ...(namespace && { namespace }) } }
}

const matches = (target: Target) => {
  knowAll('target', target, ['group', 'version', 'kind', 'name', 'namespace'])
  return (manifest: Manifest): boolean => {
    const [group = '', version = manifest.apiVersion] = manifest.apiVersion.includes('/')
      ? manifest.apiVersion.split('/')
      : ['', manifest.apiVersion]
    const { name, namespace = '' } = manifest.metadata
    const its: Required<Target> = { group, version, kind: manifest.kind, name, namespace }
    // Patterns, anchored at both ends.
    return Object.entries(target).every(([key, pattern]) =>
      new RegExp(`^(?:${pattern})$`).test(its[key as keyof Target]),
    )
  }
}

const hasIdOf = (content: Manifest | Step[]) => {
  if (Array.isArray(content)) throw new Error('Steps need a target')
  const id = idOf(content).join(' ')
  return (manifest: Manifest): boolean => idOf(manifest).join(' ') === id
}

/** By which field the items of a list are the same, of Kubernetes' own kinds. Other lists are replaced whole. */
const KEYS: Record<string, string> = {
  containers: 'name',
  initContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  imagePullSecrets: 'name',
  'containers.ports': 'containerPort',
  'spec.ports': 'port',
}
const BUILT_IN = ['Deployment', 'StatefulSet', 'Job', 'Service', 'ServiceAccount', 'ConfigMap', 'Namespace']

const merge = (into: JsonObject, patch: JsonObject, kind: string, parent = ''): void => {
  if ('$patch' in patch) throw new Error('$patch is known for items of lists only')
  for (const [key, value] of Object.entries(patch)) {
    const old = into[key]
    if (value === null) delete into[key]
    else if (isRecord(value) && isRecord(old)) merge(old, value, kind, key)
    else if (Array.isArray(value) && Array.isArray(old)) into[key] = mergeList(old, value, kind, parent, key)
    else into[key] = value
  }
}

const mergeList = (old: Json[], patch: Json[], kind: string, parent: string, name: string): Json[] => {
  const key = BUILT_IN.includes(kind) ? (KEYS[`${parent}.${name}`] ?? KEYS[name]) : undefined
  if (!key) return patch
  const rest = [...old]
  const merged = patch.flatMap((item) => {
    if (!isRecord(item)) throw new Error(`${name}: an item of a patch has no ${key}`)
    const { $patch: directive, ...content } = item
    if (directive !== undefined && directive !== 'delete')
      throw new Error(`$patch: ${directive} is not known here`)
    const at = rest.findIndex((one) => isRecord(one) && one[key] === item[key])
    const [same] = at < 0 ? [] : rest.splice(at, 1)
    if (directive === 'delete') return []
    if (!isRecord(same)) return [content]
    merge(same, content, kind, name)
    return [same]
  })
  // What a patch names comes first, in its order: so does kustomize.
  return [...merged, ...rest]
}

const applyStep = (manifest: Manifest, { op, path, value }: Step): void => {
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = keys.pop() ?? ''
  const parent = keys.reduce<Json>((at, key) => childOf(at, key, path), manifest as JsonObject)
  if (op === 'add' && Array.isArray(parent) && value !== undefined) {
    parent.splice(last === '-' ? parent.length : Number(last), 0, value)
    return
  }
  if (!isRecord(parent) && !Array.isArray(parent)) throw new Error(`${path} leads nowhere`)
  const container = parent as JsonObject
  if (op !== 'add' && !(last in container)) throw new Error(`${path} is not there`)
  if (op === 'remove' && Array.isArray(parent)) parent.splice(Number(last), 1)
  else if (op === 'remove') delete container[last]
  else if ((op === 'add' || op === 'replace') && value !== undefined) container[last] = value
  else throw new Error(`${op} is not known here`)
}

const childOf = (at: Json, key: string, path: string): Json => {
  const child = typeof at === 'object' && at !== null ? (at as JsonObject)[key] : undefined
  if (child === undefined) throw new Error(`${path} leads nowhere`)
  return child
}

const isRecord = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Draft, type Json, knowAll } from './kustomize.ts'

export type GeneratorArgs = {
  name: string
  namespace?: string
  behavior?: 'create' | 'merge' | 'replace'
  literals?: string[]
  files?: string[]
  options?: {
    disableNameSuffixHash?: boolean
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
}

type Kind = 'ConfigMap' | 'Secret'

const FIELDS = ['name', 'namespace', 'behavior', 'literals', 'files', 'options']

/** Adds a ConfigMap or Secret to `drafts`, or changes the one of that name. */
export const generate = (drafts: Draft[], kind: Kind, args: GeneratorArgs, folder: string): void => {
  knowAll(`${kind} ${args.name}`, args, FIELDS)
  const { name, namespace, behavior = 'create', options = {} } = args
  knowAll(`${kind} ${name}`, options, ['disableNameSuffixHash', 'labels', 'annotations'])
  const { disableNameSuffixHash, ...given } = options
  const data = dataOf(kind, args, folder)
  const there = drafts.find(
    ({ manifest: { kind: itsKind, metadata } }) =>
      itsKind === kind && metadata.name === name && metadata.namespace === namespace,
  )
  if ((behavior === 'create') === (there !== undefined))
    throw new Error(`${kind} ${name} cannot be made by ${behavior}: it is ${there ? 'there' : 'not there'}`)
  if (there) {
    const old = behavior === 'merge' ? (there.manifest.data as Record<string, string>) : {}
    there.manifest.data = { ...old, ...data }
    return
  }
  drafts.push({
    generated: !disableNameSuffixHash,
    manifest: {
      apiVersion: 'v1',
      kind,
      metadata: { name, ...(namespace && { namespace }), ...given },
      data,
      ...(kind === 'Secret' && { type: 'Opaque' }),
    },
  })
}

const dataOf = (kind: Kind, { literals = [], files = [] }: GeneratorArgs, folder: string) => {
  const entries = [
    ...literals.map((literal) => keyAndValue(literal)),
    ...files.map((entry): [string, string] => {
      const [key, path] = entry.includes('=') ? keyAndValue(entry) : [basename(entry), entry]
      return [key, readFileSync(join(folder, path), 'utf8')]
    }),
  ]
  const encode = kind === 'Secret' ? inBase64 : (value: string): string => value
  return Object.fromEntries(entries.map(([key, value]) => [key, encode(value)]))
}

/** What is long in lines of 70, and the hash is that of the lines. */
const inBase64 = (value: string): string => {
  const text = Buffer.from(value).toString('base64')
  return text.length <= 70 ? text : text.replace(/.{1,70}/g, '$&\n')
}

const keyAndValue = (text: string): [string, string] => {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`"${text}" is no KEY=value`)
  // Quotes around a value are kustomize's, not the value's.
  return [text.slice(0, at), text.slice(at + 1).replace(/^(["'])(.*)\1$/, '$2')]
}

/** Generated ones are called by their content from here on, also where others name them. */
export const addHashes = (drafts: Draft[]): void => {
  for (const { manifest, generated } of drafts) {
    if (!generated) continue
    const { kind, metadata } = manifest
    const hashed = `${metadata.name}-${hashOf(manifest as unknown as Hashed)}`
    for (const other of drafts) {
      if (other.manifest.metadata.namespace === metadata.namespace)
        rename(other.manifest, kind as Kind, metadata.name, hashed)
    }
    metadata.name = hashed
  }
}

type Hashed = { kind: Kind; data: Record<string, string>; type?: string }

const hashOf = ({ kind, data, type }: Hashed): string => {
  const sorted = Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
  // kustomize means to take the name in, and takes nothing.
  const name = ''
  const content = kind === 'Secret' ? { data: sorted, kind, name, type } : { data: sorted, kind, name }
  // As Go writes JSON.
  const text = JSON.stringify(content)
    .replaceAll('<', '\\u003c')
    .replaceAll('>', '\\u003e')
    .replaceAll('&', '\\u0026')
  const hex = createHash('sha256').update(text).digest('hex').slice(0, 10)
  // No vowels, and nothing that looks like one: a name must not spell a word.
  return hex.replace(/[013ae]/g, (digit) => ({ 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' })[digit] ?? digit)
}

/** Where manifests name a ConfigMap or Secret, and in which field. */
const REFERENCES: Record<Kind, Record<string, string>> = {
  ConfigMap: { configMapRef: 'name', configMapKeyRef: 'name', configMap: 'name' },
  Secret: { secretRef: 'name', secretKeyRef: 'name', secret: 'secretName' },
}

const rename = (value: Json, kind: Kind, from: string, to: string): void => {
  if (typeof value !== 'object' || value === null) return
  for (const [key, child] of Object.entries(value)) {
    const field = REFERENCES[kind][key]
    if (field && isRecord(child) && child[field] === from) child[field] = to
    rename(child, kind, from, to)
  }
}

const isRecord = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

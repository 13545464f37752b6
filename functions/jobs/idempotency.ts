import type { IdempotencyKey, UsedKeys } from '../../db/queue/submit.ts'
import { hashSecret } from '../auth/secrets.ts'
import { type ProblemError, toPointer } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import { refOf } from './graph-faults.ts'
import type { JobRequest } from './new-job.ts'
import type { PathOf } from './submission.ts'

/** A key of the whole request, and where it stood. */
export type RequestKey = { key: string; place: { in: 'header' | 'body'; pointer: string } }

/** What a key stands for: all jobs of a request, or the one of a batch that has it. */
export type KeyedPart = { key: string; bodyHash: string; positions: number[]; place: RequestKey['place'] }

export const keyedParts = async (
  requests: readonly JobRequest[],
  whole: RequestKey | undefined,
  pathOf: PathOf,
): Promise<KeyedPart[]> => {
  if (whole) {
    const positions = requests.map((_, position) => position)
    const bodies = requests.map(({ idempotency_key: _, ...body }) => body)
    return [{ ...whole, bodyHash: await hashOf(bodies), positions }]
  }
  const meaningOf = createMeanings(requests)
  const ofJobs = requests.map(async (request, position): Promise<KeyedPart[]> => {
    const { idempotency_key: key } = request
    if (key === undefined) return []
    const place = { in: 'body' as const, pointer: toPointer([...pathOf(position), 'idempotency_key']) }
    return [{ key, place, bodyHash: await meaningOf(request), positions: [position] }]
  })
  const parts = (await Promise.all(ofJobs)).flat()
  refuseTwice(parts)
  return parts
}

/**
 * The hash of a job for itself: what it and others are called in a batch is nothing of the job, what the others are is. Each is
 * hashed once, however many depend on it, and there is no circle among them.
 */
const createMeanings = (requests: readonly JobRequest[]): ((request: JobRequest) => Promise<string>) => {
  const byRef = new Map(requests.map((request) => [request.ref, request]))
  const known = new Map<JobRequest, Promise<string>>()
  const hash = async (request: JobRequest): Promise<string> => {
    const { ref: _, idempotency_key: __, ...body } = request
    const meant = body.depends_on.map((entry) => {
      const ref = refOf(entry)
      const other = ref === undefined ? undefined : byRef.get(ref)
      return other ? meaningOf(other) : entry
    })
    return hashOf([{ ...body, depends_on: await Promise.all(meant) }])
  }
  const meaningOf = (request: JobRequest): Promise<string> => {
    const hashed = known.get(request) ?? hash(request)
    known.set(request, hashed)
    return hashed
  }
  return meaningOf
}

const refuseTwice = (parts: readonly KeyedPart[]): void => {
  const seen = new Set<string>()
  const again = parts.filter(({ key }) => seen.has(key) || !seen.add(key))
  if (again.length === 0) return
  throw problemAt(
    'invalid-request',
    again.map(({ place }) => ({ ...place, detail: 'is the idempotency key of another job of this batch' })),
  )
}

export const toIdempotencyKey = (
  { key, bodyHash, positions }: KeyedPart,
  ids: readonly string[],
): IdempotencyKey => ({
  key,
  bodyHash,
  jobIds: positions.flatMap((position) => ids[position] ?? []),
})

export const keyReused = (
  parts: readonly KeyedPart[],
  used: UsedKeys['detail'],
): ProblemError | undefined => {
  const others = parts.filter(({ key }) => used.some((one) => one.key === key && !one.same))
  if (others.length === 0) return undefined
  return problemAt(
    'idempotency-key-reused',
    others.map(({ place }) => ({ ...place, detail: 'was used within 24 hours with another body' })),
  )
}

/** Of what was meant, and not of how it was written: neither the order of keys nor defaults that are spelt out matter. */
const hashOf = (bodies: readonly object[]): Promise<string> => hashSecret(JSON.stringify(bodies.map(inOrder)))

const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, child]) => [name, inOrder(child)]))
}

/** The key of a request of one job: in the header or in the body. */
export const keyOfRequest = (
  header: string | undefined,
  body: string | undefined,
): RequestKey | undefined => {
  if (header !== undefined && body !== undefined && header !== body) {
    throw problemAt('invalid-request', [
      { in: 'body', pointer: '#/idempotency_key', detail: 'is not the Idempotency-Key of the header' },
    ])
  }
  if (header !== undefined) return { key: header, place: { in: 'header', pointer: '#/idempotency-key' } }
  return body === undefined ? undefined : { key: body, place: { in: 'body', pointer: '#/idempotency_key' } }
}

/** The key of a batch is in the header; its jobs may have keys of their own instead. */
export const keyOfBatch = (
  header: string | undefined,
  jobs: readonly JobRequest[],
): RequestKey | undefined => {
  const keyed = jobs.findIndex(({ idempotency_key }) => idempotency_key !== undefined)
  if (header !== undefined && keyed >= 0) {
    const pointer = toPointer(['jobs', keyed, 'idempotency_key'])
    const detail = 'cannot be given beside an Idempotency-Key of the whole batch'
    throw problemAt('invalid-request', [{ in: 'body', pointer, detail }])
  }
  return keyOfRequest(header, undefined)
}

import { signal } from '@preact/signals'
import { user } from '../../../session/session.ts'
import { type Draft, EMPTY_DRAFT } from './draft.ts'

type Kept = {
  draft: Draft
  /** The same until the job is submitted: sent twice, or again after a lost answer, it is still one job. */
  idempotencyKey: string
  /** A payload that was made as an example may be replaced by the next one. */
  example: string
}

const begin = (): Kept => ({
  draft: EMPTY_DRAFT,
  idempotencyKey: crypto.randomUUID(),
  example: EMPTY_DRAFT.payload,
})

/** Closing the dialog, or having to sign in again, loses nothing of what was typed. */
export const kept = signal<Kept>(begin())
let owner = ''

export const openDraft = (): void => {
  const current = `${user.peek()?.id} ${user.peek()?.org_id}`
  if (current !== owner) kept.value = begin()
  owner = current
}

export const change = (part: Partial<Draft>): void => {
  kept.value = { ...kept.value, draft: { ...kept.value.draft, ...part } }
}

/** Another type brings its own example, unless the payload was written by hand. */
export const chooseType = (type: string, example: string): void => {
  const { draft, example: former } = kept.value
  const payload = draft.payload === former ? example : draft.payload
  kept.value = { ...kept.value, draft: { ...draft, type, payload }, example }
}

export const discardDraft = (): void => {
  kept.value = begin()
}

/** What was sent under the key is another job: what stands here now is a new one. */
export const renewKey = (): void => {
  kept.value = { ...kept.value, idempotencyKey: crypto.randomUUID() }
}

import assert from 'node:assert/strict'
import type { Answer } from './edge.ts'

/** The answer is a problem of this kind, complete, and tells nothing of the inside. */
export const assertProblem = (answer: Answer, status: number, slug: string, pointer?: string): void => {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/problem+json')
  assert.equal(answer.body.type, `/docs#problem-${slug}`)
  assert.equal(answer.body.status, status)
  assert.ok(answer.body.title && answer.body.detail && answer.body.request_id)
  assert.doesNotMatch(answer.text, /insert into|select |relation|SQLSTATE|at .*\.ts:\d|postgres(ql)?:\/\//i)
  if (pointer) {
    const pointers = answer.body.errors?.map((error: { pointer: string }) => error.pointer)
    assert.ok(pointers?.includes(pointer), `${pointer} is named in ${answer.text}`)
  }
}

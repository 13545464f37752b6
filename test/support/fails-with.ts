import assert from 'node:assert/strict'
import { JobError } from '../../worker-runtime/handler-api.ts'

/** For `assert.rejects`: the attempt fails with this code, for good or not, and says so. */
export const failsWith = (code: string, permanent: boolean, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof JobError, String(error))
  assert.deepEqual([error.code, error.permanent], [code, permanent], error.message)
  assert.match(error.message, message)
  return true
}

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { gzipBytes, workerOfTests } from '../support/bundle.ts'

const LARGEST = 300_000

test('the Worker that a deployment would upload is below 300 kB, compressed', async () => {
  // With a few lines more, which read what is left of requests.
  const file = workerOfTests()
  const bytes = await gzipBytes(file)
  assert.ok(bytes < LARGEST, `${bytes} bytes`)
  const text = await readFile(file, 'utf8')
  assert.ok(!text.includes('Ungültige Eingabe'), 'nor does it speak all languages of zod')
  assert.ok(!text.includes('Unknown zod object type'), 'nor can it make an OpenAPI document')
  assert.ok(!text.includes('cannot be represented in JSON Schema'), 'nor JSON Schema of a schema')
})

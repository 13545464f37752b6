import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { bundledFolder, gzipBytes, THE_WORKER } from '../support/bundle.ts'

const LARGEST = 250_000

const file = join(bundledFolder(), THE_WORKER.main)

test('the Worker that a deployment would upload has less than 250 kB, compressed', async () => {
  const bytes = await gzipBytes(file)
  assert.ok(bytes < LARGEST, `${bytes} bytes`)
})

test('the Worker carries nothing of what its packages can do and it does not ask for', async () => {
  const text = await readFile(file, 'utf8')
  assert.ok(!text.includes('Ungültige Eingabe'), 'the languages of zod')
  assert.ok(!text.includes('Unknown zod object type'), 'how zod-to-openapi makes a document')
})

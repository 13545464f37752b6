import { fileURLToPath } from 'node:url'
import { describeApi } from '../api-docs/document.ts'
import { createApp } from '../app.ts'
import { writeIfChanged } from './write-if-changed.ts'

const OUTPUT = fileURLToPath(new URL('../assets/openapi.json', import.meta.url))

/** Makes the OpenAPI document an asset of the Worker, which so need not carry what makes it. */
export const buildApiDocument = (): Promise<void> =>
  writeIfChanged(OUTPUT, Buffer.from(JSON.stringify(describeApi(createApp()))))

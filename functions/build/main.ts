/** Makes the assets of the Worker that are not in git. wrangler runs it before it serves or deploys them. */
import { buildDashboard } from '../dashboard/build.ts'
import { ifChanged } from './if-changed.ts'

// To describe the API is to load all of it, which takes a second: only if something of it has changed.
await ifChanged('openapi.json', async () => {
  const { buildApiDocument } = await import('./api-document.ts')
  await buildApiDocument()
})
const files = await buildDashboard()
const bytes = files.reduce((sum, file) => sum + file.gzipBytes, 0)
console.log(
  `Built openapi.json and the dashboard (${files.length} files, ${(bytes / 1000).toFixed(1)} kB compressed) in functions/assets/`,
)

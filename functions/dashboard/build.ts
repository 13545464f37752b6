/** Bundles the dashboard into the assets of the Worker. wrangler runs it before it serves or deploys them. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const SOURCE = dirname(fileURLToPath(import.meta.url))
const OUTPUT = join(SOURCE, '../assets/dashboard')

export type BuiltFile = { path: string; gzipBytes: number }

/**
 * A view is a chunk of its own, loaded when it is first opened. Chunks are named by their content and may be kept for good;
 * the entry and the styles keep their names, and browsers ask whether they have changed.
 */
export const buildDashboard = async (): Promise<BuiltFile[]> => {
  const { outputFiles } = await build({
    entryPoints: [join(SOURCE, 'main.tsx'), join(SOURCE, 'styles/main.css')],
    outdir: OUTPUT,
    entryNames: '[name]',
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'error',
    write: false,
  })
  // The entry last: what it loads must be there.
  const files = outputFiles.toSorted((a, b) => Number(isEntry(a.path)) - Number(isEntry(b.path)))
  for (const { path, contents } of files) await writeIfChanged(path, contents)
  await removeOthers(files.map(({ path }) => path))
  return files.map(({ path, contents }) => ({
    path: relative(OUTPUT, path),
    gzipBytes: gzipSync(contents, { level: 9 }).length,
  }))
}

const isEntry = (path: string): boolean => dirname(path) === OUTPUT

/** A server that watches the assets starts over at each write. */
const writeIfChanged = async (path: string, contents: Uint8Array): Promise<void> => {
  const existing = await readFile(path).catch(() => undefined)
  if (existing?.equals(contents)) return
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, contents)
}

const removeOthers = async (kept: string[]): Promise<void> => {
  for (const entry of await readdir(OUTPUT, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.includes(path)) await rm(path, { force: true })
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const files = await buildDashboard()
  const bytes = files.reduce((sum, file) => sum + file.gzipBytes, 0)
  console.log(
    `Built the dashboard: ${files.length} files, ${(bytes / 1000).toFixed(1)} kB compressed, in functions/assets/dashboard/`,
  )
}

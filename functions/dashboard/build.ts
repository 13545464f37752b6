import { readdir, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { writeIfChanged } from '../build/write-if-changed.ts'

const SOURCE = dirname(fileURLToPath(import.meta.url))
const OUTPUT = join(SOURCE, '../assets/dashboard')

export type BuiltFile = { path: string; gzipBytes: number }

/**
 * Bundles the dashboard into the assets of the Worker.
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

const removeOthers = async (kept: string[]): Promise<void> => {
  for (const entry of await readdir(OUTPUT, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.includes(path)) await rm(path, { force: true })
  }
}

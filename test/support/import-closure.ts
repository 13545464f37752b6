import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { build } from 'esbuild'

export type Closure = { files: string[]; packages: string[] }

/**
 * All files that programs need to run, from `root`, and the packages that these import. Modules of threads are no imports: they
 * are found as `new URL('…', import.meta.url)`.
 */
export const importClosure = async (root: string, entries: string[]): Promise<Closure> => {
  const seen = new Set<string>()
  const files = new Set<string>()
  const packages = new Set<string>()
  let open = entries
  while (open.length > 0) {
    for (const entry of open) seen.add(entry)
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: open,
      ...{ bundle: true, write: false, metafile: true, platform: 'node', format: 'esm', outdir: 'nowhere' },
      packages: 'external',
      logLevel: 'silent',
    })
    for (const [file, { imports }] of Object.entries(metafile.inputs)) {
      files.add(file)
      for (const { path, external } of imports)
        if (external && !path.startsWith('node:')) packages.add(packageOf(path))
    }
    open = [...files].flatMap((file) => urlsIn(root, file)).filter((file) => !seen.has(file))
    for (const file of open) if (!file.endsWith('.ts')) seen.add(file)
    for (const file of open) files.add(file)
    open = [...new Set(open)].filter((file) => file.endsWith('.ts'))
  }
  return { files: [...files].sort(), packages: [...packages].sort() }
}

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

const urlsIn = (root: string, file: string): string[] => {
  if (!file.endsWith('.ts')) return []
  const text = readFileSync(resolve(root, file), 'utf8')
  return [...text.matchAll(/new URL\(\s*'(\.[^']+)',\s*import\.meta\.url,?\s*\)/g)].flatMap(
    ([, path = '']) => {
      const found = resolve(root, dirname(file), path)
      return existsSync(found) ? [relative(root, found)] : []
    },
  )
}

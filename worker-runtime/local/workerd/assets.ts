import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'

/** By path: a file with its headers, or a redirect. `workerFirst`: the functions answer before the asset is served. */
export type AssetList = Record<string, Asset>
export type Asset =
  | { redirect: string; workerFirst?: undefined }
  | { file: string; headers: Record<string, string>; workerFirst: boolean }

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}

/** What Cloudflare makes of the folder: pages without `.html`, and the headers of `_headers`. */
export const listAssets = (folder: string, workerFirst: readonly string[]): AssetList => {
  const rules = parseHeaders(readFileSync(join(folder, '_headers'), 'utf8'))
  const list: AssetList = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === '_headers') continue
    const file = `/${relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/')}`
    const path = file.replace(/(\/)index\.html$|\.html$/, '$1')
    const content = readFileSync(join(folder, file))
    const ruled = rules.filter(({ covers }) => covers(path)).map(({ headers }) => headers)
    list[path] = {
      file,
      headers: {
        'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
        'cache-control': 'public, max-age=0, must-revalidate',
        etag: `"${createHash('sha256').update(content).digest('hex').slice(0, 32)}"`,
        ...Object.assign({}, ...ruled),
      },
      workerFirst: workerFirst.includes(path),
    }
    if (path !== file) list[file] = { redirect: path }
    if (path !== file && path !== '/') list[`${path}/`] = { redirect: path }
  }
  return list
}

type Rule = { covers: (path: string) => boolean; headers: Record<string, string> }

/** A line with a path, which may end in `*`, and indented lines with its headers. */
const parseHeaders = (text: string): Rule[] => {
  const rules: Rule[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('/')) {
      const path = line.trim()
      const covers = (asset: string): boolean =>
        path.endsWith('*') ? asset.startsWith(path.slice(0, -1)) : asset === path
      rules.push({ covers, headers: {} })
    } else if (line.trim() !== '') {
      const [name = '', ...value] = line.split(':')
      const rule = rules.at(-1)
      if (rule) rule.headers[name.trim().toLowerCase()] = value.join(':').trim()
    }
  }
  return rules
}

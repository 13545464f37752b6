/**
 * The view that is shown is in the hash of the address: paths belong to the API. `#/jobs?status=failed` is the path
 * `['jobs']` and a query.
 */
import { computed, signal } from '@preact/signals'

export type Route = { path: string[]; query: URLSearchParams }

const parse = (hash: string): Route => {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s, 2)
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
}

/** An address that was cut off or mistyped leads to nothing, but does not break the page. */
const decode = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

export const route = computed(() => parse(hash.value))

export type Query = Record<string, string | null | undefined>

/** The address of a view, for links. Empty values are left out. */
export const linkTo = (path: string, query: Query = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const text = new URLSearchParams(given).toString()
  return `#${path}${text ? `?${text}` : ''}`
}

export const navigate = (path: string, query?: Query): void => {
  location.hash = linkTo(path, query)
}

/** Changes the query of the view that is shown, without a step in the history. */
export const replaceQuery = (query: Query): void => {
  const target = linkTo(`/${route.peek().path.map(encodeURIComponent).join('/')}`, query)
  history.replaceState(null, '', target)
  hash.value = location.hash
}

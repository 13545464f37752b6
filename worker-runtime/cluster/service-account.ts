import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../command.ts'
import { ConfigError } from '../config.ts'

/** Where Kubernetes mounts what a pod needs to speak to its API. */
export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'

export type Credentials = { readonly token: string; readonly ca: string }

/** For each request anew: the token is valid for an hour and is replaced in its file before, and so may the CA be. */
export const readCredentials = async (folder: string): Promise<Credentials> => {
  const [token, ca] = await Promise.all([read(folder, 'token'), read(folder, 'ca.crt')])
  return { token, ca }
}

/** That of the pod. */
export const readNamespace = (folder: string): Promise<string> => read(folder, 'namespace')

const read = async (folder: string, file: string): Promise<string> => {
  const text = (await readFile(join(folder, file), 'utf8').catch(missing)).trim()
  // A bearer token that is empty makes a request of nobody, and what that is refused for names nobody.
  if (text === '') throw new Error(`${join(folder, file)} is empty`)
  return text
}

const missing = (error: NodeJS.ErrnoException): never => {
  if (error.code !== 'ENOENT') throw error
  throw new UsageError(
    `There is no ${error.path}. Let the pod have its ServiceAccount's token (automountServiceAccountToken: true), or name the folder with --service-account.`,
  )
}

/** Kubernetes tells every pod where its API is. */
export const apiServerOf = (env: Record<string, string | undefined>): string => {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (!host || !port)
    throw new ConfigError(
      'KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT: are not set. They are in every pod: run this in a cluster',
    )
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}

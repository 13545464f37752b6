import { readFileSync } from 'node:fs'

const read = (file: string): string =>
  readFileSync(new URL(`./certificates/${file}`, import.meta.url), 'utf8')

export const caOf = (name: 'cluster-ca' | 'front-proxy-ca' | 'other-ca'): string => read(`${name}.crt`)

export type CertifiedClient = 'front-proxy-client' | 'stranger' | 'impostor'
export type CertifiedServer = 'server' | 'renewed-server'

export const certificateOf = (name: CertifiedClient | CertifiedServer): { cert: string; key: string } => ({
  cert: read(`${name}.crt`),
  key: read(`${name}.key`),
})

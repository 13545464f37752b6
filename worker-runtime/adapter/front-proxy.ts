import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import type { ApiClient } from '../cluster/api-client.ts'

/** Whom the adapter answers: the API servers of its cluster, which have made sure who asks and that they may. */
export type FrontProxy = {
  /** Certificates, as PEM, one of which has signed theirs. */
  readonly ca: string
  /** Their common names. None: whoever the CA has signed for. */
  readonly allowedNames: readonly string[]
}

const CONFIG_MAP = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication'

/** Kubernetes tells the servers of its other APIs by this ConfigMap. */
export const readFrontProxy = async (api: ApiClient): Promise<FrontProxy> => {
  const { data } = await api.get(CONFIG_MAP, configMapSchema)
  const ca = data['requestheader-client-ca-file']
  if (!ca)
    throw new Error(
      'The cluster has no aggregation layer: start its API server with --requestheader-client-ca-file',
    )
  requireCertificates(ca)
  return { ca, allowedNames: namesSchema.parse(JSON.parse(data['requestheader-allowed-names'] || '[]')) }
}

const configMapSchema = z.object({
  data: z
    .object({
      'requestheader-client-ca-file': z.string().optional(),
      'requestheader-allowed-names': z.string().optional(),
    })
    .default({}),
})

const namesSchema = z.array(z.string())

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Without a certificate in it, TLS would trust whomever a public CA has signed for. */
const requireCertificates = (pem: string): void => {
  const certificates = pem.match(CERTIFICATE) ?? []
  if (certificates.length === 0) throw new Error('requestheader-client-ca-file holds no certificate')
  for (const certificate of certificates) new X509Certificate(certificate)
}

/** That the CA has signed is checked by TLS. */
export const isAllowed = ({ allowedNames }: FrontProxy, commonName: string | undefined): boolean =>
  allowedNames.length === 0 || (commonName !== undefined && allowedNames.includes(commonName))

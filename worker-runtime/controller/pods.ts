import { z } from 'zod'
import { type ApiClient, METADATA_LIST } from '../cluster/api-client.ts'

export type Pod = { readonly name: string; readonly uid: string; readonly cost: number }

export type Pods = {
  /** Those that are not being deleted already. */
  list(): Promise<Pod[]>
  setCost(pod: Pod, cost: number): Promise<void>
}

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost'
const PAGE = 500

/** The pods of the workers, in one namespace. */
export const createPods = (options: { api: ApiClient; namespace: string; selector: string }): Pods => {
  const { api } = options
  const collection = `/api/v1/namespaces/${options.namespace}/pods`

  return {
    list: async () => {
      const pods: Pod[] = []
      let more: string | undefined
      do {
        const query = new URLSearchParams({ labelSelector: options.selector, limit: String(PAGE) })
        if (more) query.set('continue', more)
        const page = await api.get(`${collection}?${query}`, podListSchema, METADATA_LIST)
        pods.push(
          ...page.items.flatMap(({ metadata }) => (metadata.deletionTimestamp ? [] : toPod(metadata))),
        )
        more = page.metadata.continue
      } while (more)
      return pods
    },
    setCost: ({ name, uid }, cost) => {
      // The uid makes the API refuse if another pod has got the name meanwhile.
      const patch = { metadata: { uid, annotations: { [DELETION_COST]: String(cost) } } }
      return api.mergePatch(`${collection}/${name}?fieldManager=smartqueue-controller`, patch)
    },
  }
}

const metadataSchema = z.object({
  name: z.string(),
  uid: z.string(),
  deletionTimestamp: z.string().optional(),
  annotations: z.record(z.string(), z.string()).optional(),
})

const podListSchema = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(z.object({ metadata: metadataSchema })),
})

/** A pod without the annotation costs nothing. One that is no number is replaced: it equals none. */
const toPod = ({ name, uid, annotations }: z.output<typeof metadataSchema>): Pod => ({
  name,
  uid,
  cost: Number(annotations?.[DELETION_COST] ?? 0),
})

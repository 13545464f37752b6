import { PageHead } from '../../ui/panel.tsx'
import type { ViewProps } from '../index.ts'
import { Callbacks } from './callbacks.tsx'
import { DeliveryPage } from './delivery-page.tsx'
import { SourcePage } from './source-page.tsx'
import { Sources } from './sources.tsx'

/** What others tell SmartQueue, and what it tells them. */
export const View = ({ rest: [sourceId, deliveryId] }: ViewProps) => {
  if (sourceId && deliveryId)
    return <DeliveryPage key={deliveryId} sourceId={sourceId} deliveryId={deliveryId} />
  if (sourceId) return <SourcePage key={sourceId} id={sourceId} />
  return (
    <>
      <PageHead
        title="Webhooks"
        about="Events of others that become jobs, and what others are told when jobs end."
      />
      <div class="stack">
        <Sources />
        <Callbacks />
      </div>
    </>
  )
}

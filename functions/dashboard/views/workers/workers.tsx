import { PageHead } from '../../ui/panel.tsx'
import { Fleet } from './fleet.tsx'
import { Leadership } from './leadership.tsx'
import { QueueControl } from './queue-control.tsx'

/** Who runs jobs, who leads, and whether jobs are started at all. */
export const View = () => (
  <>
    <PageHead
      title="Workers"
      about="The processes that claim and run jobs. They serve all organisations; the jobs shown are those of yours."
    />
    <div class="with-aside">
      <Fleet />
      <div class="stack">
        <QueueControl />
        <Leadership />
      </div>
    </div>
  </>
)

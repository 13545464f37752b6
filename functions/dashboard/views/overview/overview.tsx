import { summary } from '../../live/live.ts'
import { linkTo } from '../../router.ts'
import { may } from '../../session/session.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { Activity } from './activity.tsx'
import { Depth } from './depth.tsx'
import { Gain } from './gain.tsx'
import { Numbers } from './numbers.tsx'
import { Share } from './share.tsx'
import { Throughput } from './throughput.tsx'

/** The state of the organisation's queue, as it is now. */
export const View = () => (
  <>
    <PageHead title="Overview" about="Your organisation's queue, as it is now.">
      {may('jobs:submit') && (
        <ButtonLink kind="primary" icon="plus" href={linkTo('/jobs', { submit: 'new' })}>
          Submit a job
        </ButtonLink>
      )}
    </PageHead>
    {summary.value?.paused && (
      <p class="banner" role="status">
        The queue is paused: jobs are accepted, and wait. What runs goes on.
      </p>
    )}
    <Numbers />
    <div class="grid">
      <Throughput />
      <Depth />
      <Gain />
      <Activity />
      <Share />
    </div>
  </>
)

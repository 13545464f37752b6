import { useMemo } from 'preact/hooks'
import type { JobType, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { linkTo, replaceQuery, route } from '../../router.ts'
import { may } from '../../session/session.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Lazy } from '../../ui/lazy.tsx'
import { PageHead } from '../../ui/panel.tsx'
import type { ViewProps } from '../index.ts'
import { Bulk } from './bulk.tsx'
import { filterOf } from './filter.ts'
import { Filters } from './filters.tsx'
import { JobTable } from './job-table.tsx'

export const View = ({ rest: [id] }: ViewProps) =>
  id === undefined ? (
    <Jobs />
  ) : (
    <Lazy load={() => import('../job/job.tsx')}>{({ JobView }) => <JobView key={id} id={id} />}</Lazy>
  )

/** All jobs of the organisation, as they change. What is shown stands in the address, to be shared. */
const Jobs = () => {
  const { query } = route.value
  const key = new URLSearchParams(filterOf(query)).toString()
  const filter = useMemo(() => filterOf(query), [key])
  const types = useResource((signal) => get<Page<JobType>>('/jobs/types', { limit: 200 }, signal))
  const submitting = query.get('submit') === 'new' && may('jobs:submit')
  return (
    <>
      <PageHead title="Jobs" about="Newest first, as they change.">
        {may('jobs:manage') && <Bulk filter={filter} />}
        {may('jobs:submit') && (
          <ButtonLink kind="primary" icon="plus" href={linkTo('/jobs', { ...filter, submit: 'new' })}>
            Submit a job
          </ButtonLink>
        )}
      </PageHead>
      <Filters filter={filter} types={types.data.value?.items ?? []} />
      <JobTable key={key} filter={filter} />
      {submitting && (
        <Lazy load={() => import('./submit/submit-dialog.tsx')} bones={null}>
          {({ SubmitDialog }) => <SubmitDialog types={types} onClose={() => replaceQuery(filter)} />}
        </Lazy>
      )}
    </>
  )
}

import { useMemo } from 'preact/hooks'
import type { JobType, Page } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { linkTo, replaceQuery, route } from '../../router.ts'
import { may } from '../../session/session.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { PageHead } from '../../ui/panel.tsx'
import type { ViewProps } from '../index.ts'
import { JobView } from '../job/job.tsx'
import { Bulk } from './bulk.tsx'
import { filterOf } from './filter.ts'
import { Filters } from './filters.tsx'
import { JobTable } from './job-table.tsx'
import { SubmitDialog } from './submit/submit-dialog.tsx'

export const View = ({ rest: [id] }: ViewProps) =>
  id === undefined ? <Jobs /> : <JobView key={id} id={id} />

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
      {submitting && <SubmitDialog types={types} onClose={() => replaceQuery(filter)} />}
    </>
  )
}

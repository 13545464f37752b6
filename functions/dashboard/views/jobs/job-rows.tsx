import { useMemo } from 'preact/hooks'
import type { JobSummary } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { Badge, PriorityBadge, StatusBadge, Tags } from '../../ui/badges.tsx'
import { duration } from '../../ui/format.ts'
import { Time } from '../../ui/time.tsx'
import { fits, type JobFilter } from './filter.ts'
import type { JobList } from './job-list.ts'
import { Outlook } from './outlook.tsx'
import type { RowWindow } from './row-window.ts'

const COLUMNS = [
  { name: 'status', title: 'Status' },
  { name: 'name', title: 'Name' },
  { name: 'type', title: 'Type' },
  { name: 'priority', title: 'Priority' },
  { name: 'tags', title: 'Tags' },
  { name: 'predicted numeric', title: 'Predicted' },
  { name: 'outlook numeric', title: 'Ran or ends' },
  { name: 'attempts numeric', title: 'Attempts' },
  { name: 'created numeric', title: 'Created' },
]

/** Only the rows near the screen are drawn; two empty ones are as high as all the others together. */
export const JobRows = (props: { list: JobList; shown: RowWindow; rowHeight: number; filter: JobFilter }) => {
  const { list, shown, rowHeight, filter } = props
  const { rows, complete } = list
  const end = Math.min(shown.end, rows.length)
  const first = Math.min(shown.first, end)
  return (
    // Their number is not known before the end is reached.
    <table class="job-rows" aria-rowcount={complete ? rows.length + 1 : -1}>
      <caption class="visually-hidden">Jobs, newest first</caption>
      <thead>
        <tr aria-rowindex={1}>
          {COLUMNS.map(({ name, title }) => (
            <th key={name} scope="col" class={name}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Space height={first * rowHeight} />
        {rows.slice(first, end).map((job, n) => (
          <Row key={job.id} job={job} position={first + n} leaves={!fits(filter, job)} />
        ))}
        <Space height={(rows.length - end) * rowHeight} />
      </tbody>
    </table>
  )
}

const Space = ({ height }: { height: number }) => (
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it can be focused, and it is no row of the table
  <tr class="space" aria-hidden="true" hidden={height === 0}>
    <td style={{ height: `${height}px` }} />
  </tr>
)

/** A row whose job has not changed is not drawn again. */
const Row = (props: { job: JobSummary; position: number; leaves: boolean }) => {
  const { job, position, leaves } = props
  return useMemo(
    () => (
      <tr
        aria-rowindex={position + 2}
        class={leaves ? 'leaves' : ''}
        data-job={job.id}
        title={leaves ? 'No longer matches the filter' : undefined}
      >
        <Cells job={job} />
      </tr>
    ),
    [job, position, leaves],
  )
}

const Cells = ({ job }: { job: JobSummary }) => (
  <>
    <td class="status">
      <StatusBadge status={job.status} />
    </td>
    <td class="name">
      <div>
        <a href={linkTo(`/jobs/${job.id}`)} title={job.name}>
          {job.name}
        </a>
        {job.slow && <Badge tone="amber">slow</Badge>}
        {job.deadline_at_risk && job.finished_at === null && <Badge tone="red">at risk</Badge>}
      </div>
    </td>
    <td class="type" title={job.type}>
      {job.type}
    </td>
    <td class="priority">
      <PriorityBadge priority={job.priority} />
    </td>
    <td class="tags" title={job.tags.join(', ')}>
      <Tags tags={job.tags} />
    </td>
    <td
      class="predicted numeric"
      title={`9 of 10 such attempts take ${duration(job.prediction.p90_ms)} at most`}
    >
      {duration(job.prediction.p50_ms)}
    </td>
    <td class="outlook numeric">
      <Outlook job={job} />
    </td>
    <td class="attempts numeric">
      {job.attempts} <span class="muted">of {job.retry.max_attempts}</span>
    </td>
    <td class="created numeric">
      <Time at={job.created_at} />
    </td>
  </>
)

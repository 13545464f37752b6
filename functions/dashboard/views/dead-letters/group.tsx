import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { DeadLetters, JobSummary } from '../../api/answers.ts'
import { linkTo } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Badge, Tags } from '../../ui/badges.tsx'
import { Button } from '../../ui/button.tsx'
import { count, counted, DASH } from '../../ui/format.ts'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Time } from '../../ui/time.tsx'
import { ReplayButton } from './replay-button.tsx'

/** Jobs that failed alike: errors that differ only in ids, numbers and quoted values are one group. */
export const Group = ({ group, onReplayed }: { group: DeadLetters; onReplayed: () => void }) => {
  const open = useSignal(false)
  return (
    <section class="panel" aria-label={`${group.code}: ${group.message.slice(0, 100)}`}>
      <header class="panel-head">
        <div>
          <div class="letters-head">
            <h2>{group.code}</h2>
            <Badge tone="red">{counted(group.count, 'job')}</Badge>
            <span>
              <Tags tags={group.types} />
            </span>
          </div>
          <p class="muted letters-times">
            <span>
              {group.count > 1 ? 'Last failed' : 'Failed'} <Time at={group.last_failed_at} />
            </span>
            {group.count > 1 && (
              <span>
                First failed <Time at={group.first_failed_at} />
              </span>
            )}
          </p>
        </div>
        <div class="actions">
          <Button
            small
            kind="quiet"
            icon={open.value ? 'down' : 'chevron'}
            expanded={open.value}
            onClick={() => {
              open.value = !open.value
            }}
          >
            {open.value ? 'Hide jobs' : 'Show jobs'}
          </Button>
          {may('jobs:manage') && (
            <ReplayButton
              small
              selection={{ fingerprint: group.fingerprint }}
              jobs={group.count}
              onDone={onReplayed}
              about={
                <>
                  They failed with <code>{group.code}</code>. Replay them once its cause is mended.
                </>
              }
            >
              Replay group
            </ReplayButton>
          )}
        </div>
      </header>
      <p
        class="letters-message"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
      >
        {group.message}
      </p>
      {open.value && <Jobs group={group} />}
    </section>
  )
}

const Jobs = ({ group }: { group: DeadLetters }) => {
  const pages = usePages<JobSummary>('/jobs', { fingerprint: group.fingerprint }, 20)
  useEffect(() => pages.reload(), [group.count, group.last_failed_at])
  return (
    <div class="letters-jobs">
      <PagedTable
        pages={pages}
        label={`Jobs that failed with ${group.code}`}
        keyOf={({ id }) => id}
        empty={<p class="muted">All of them were replayed.</p>}
        columns={[
          { title: 'Job', cell: ({ id, name }) => <a href={linkTo(`/jobs/${id}`)}>{name}</a> },
          { title: 'Type', minor: true, cell: ({ type }) => type },
          { title: 'Attempts', numeric: true, cell: ({ attempts }) => count(attempts) },
          {
            title: 'Error',
            minor: true,
            cell: ({ error }) => (
              <span class="one-line" title={error?.message}>
                {error?.message ?? DASH}
              </span>
            ),
          },
          { title: 'Failed', cell: ({ finished_at }) => <Time at={finished_at} /> },
        ]}
      />
    </div>
  )
}

import { useSignal } from '@preact/signals'
import type { DeadLetters } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { linkTo, replaceQuery, route } from '../../router.ts'
import { may } from '../../session/session.ts'
import { Select } from '../../ui/field.tsx'
import { Empty, Failure, Skeleton } from '../../ui/notes.tsx'
import { More, type Pages, usePages } from '../../ui/pager.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { Group } from './group.tsx'
import { ReplayButton } from './replay-button.tsx'

/** Jobs that failed for good, by their error. */
export const View = () => {
  const type = route.value.query.get('type') ?? ''
  const groups = usePages<DeadLetters>('/dlq', { type })
  const { items } = groups
  // A job that leaves the list does so into one of these states.
  useReloadOnEvents(
    groups.reload,
    ({ job: { status } }) => status === 'failed' || (hasAny(groups) && LEFT_FOR.includes(status)),
    2_000,
  )
  return (
    <>
      <PageHead title="Dead letters" about="Jobs that failed for good, by their error.">
        {may('jobs:manage') && hasAny(groups) && <ReplayAll type={type} groups={groups} />}
      </PageHead>
      <TypeFilter type={type} groups={items.value ?? []} />
      {groups.error.value ? (
        <Failure error={groups.error.value} retry={groups.reload} />
      ) : items.value === undefined ? (
        <Skeleton height="12rem" />
      ) : (
        <div class="stack">
          {items.value.map((group) => (
            <Group key={group.fingerprint} group={group} onReplayed={groups.reload} />
          ))}
          {items.value.length === 0 && <NoLetters type={type} />}
          <More pages={groups} />
        </div>
      )}
    </>
  )
}

const LEFT_FOR: readonly string[] = ['ready', 'pending', 'blocked']

const hasAny = ({ items }: Pages<DeadLetters>): boolean => (items.value?.length ?? 0) > 0

const ReplayAll = ({ type, groups }: { type: string; groups: Pages<DeadLetters> }) => (
  <ReplayButton
    selection={type ? { type } : { all: true }}
    jobs={groups.items.value?.reduce((sum, group) => sum + group.count, 0) ?? 0}
    isMore={groups.hasMore.value}
    onDone={groups.reload}
    about={
      type
        ? `All failed jobs of the type ${type}, whatever their error.`
        : 'All failed jobs, whatever their error.'
    }
  >
    {type ? `Replay all of type ${type}` : 'Replay all'}
  </ReplayButton>
)

/** Types that are known, and those that only dead letters still have. */
const TypeFilter = ({ type, groups }: { type: string; groups: readonly DeadLetters[] }) => {
  const known = useResource((signal) => get<{ items: { type: string }[] }>('/jobs/types', {}, signal))
  const seen = useSignal<string[]>([])
  const types = new Set([
    ...(known.data.value?.items.map((one) => one.type) ?? []),
    ...seen.value,
    ...groups.flatMap((group) => group.types),
    ...(type ? [type] : []),
  ])
  return (
    <div class="letters-filter">
      <Select
        label="Type"
        value={type}
        options={[{ value: '', label: 'All types' }, ...[...types].sort()]}
        onChange={(value) => {
          seen.value = [...types]
          replaceQuery({ type: value })
        }}
      />
    </div>
  )
}

const NoLetters = ({ type }: { type: string }) => (
  <div class="panel">
    <Empty title={type ? `No dead letters of the type ${type}` : 'No dead letters'}>
      <p class="muted">
        Jobs that fail for good are listed here, by their error. <a href={linkTo('/jobs')}>See all jobs</a>.
      </p>
    </Empty>
  </div>
)

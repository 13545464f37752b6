import { useSignal } from '@preact/signals'
import { JOB_STATES, type JobState } from '../../../../db/rules/job-states.ts'
import { PRIORITIES } from '../../../../db/rules/priority.ts'
import type { JobType } from '../../api/answers.ts'
import { summary } from '../../live/live.ts'
import { replaceQuery } from '../../router.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { capitalised, shortCount } from '../../ui/format.ts'
import { Segments } from '../../ui/segments.tsx'
import { isSet, type JobFilter } from './filter.ts'
import { SettledField } from './settled-field.tsx'

const ANY = ''

/** Each choice goes into the address, and from there into the list. */
export const Filters = ({ filter, types }: { filter: JobFilter; types: readonly JobType[] }) => {
  const set = (change: { [Field in keyof JobFilter]: string | undefined }): void =>
    replaceQuery({ ...filter, ...change })
  const { text: _, status: __, ...others } = filter
  /** Only on a narrow screen, where they would push the jobs out of sight. */
  const unfolded = useSignal(isSet(others))
  return (
    <search class="job-filters">
      <Segments<JobState | ''>
        label="Status"
        value={filter.status ?? ANY}
        options={[{ value: ANY, label: 'All' }, ...JOB_STATES.map(statusChoice)]}
        onChange={(status) => set({ status })}
      />
      <div class={`filters${unfolded.value ? '' : ' folded'}`}>
        <SettledField
          label="Search"
          type="search"
          placeholder="Name, tag or id"
          value={filter.text ?? ''}
          onSettle={(text) => set({ text })}
        />
        <button
          type="button"
          class="button more-filters"
          aria-expanded={unfolded.value}
          onClick={() => {
            unfolded.value = !unfolded.value
          }}
        >
          Filters
        </button>
        <Select
          label="Type"
          value={filter.type ?? ANY}
          options={[{ value: ANY, label: 'Any' }, ...typeChoices(types, filter.type)]}
          onChange={(type) => set({ type })}
        />
        <SettledField
          label="Name"
          placeholder="Exact name"
          value={filter.name ?? ''}
          onSettle={(name) => set({ name })}
        />
        <SettledField label="Tag" value={filter.tag ?? ''} onSettle={(tag) => set({ tag })} />
        <Select
          label="Priority"
          value={filter.priority ?? ANY}
          options={[{ value: ANY, label: 'Any' }, ...PRIORITIES]}
          onChange={(priority) => set({ priority })}
        />
        <Button kind="quiet" small icon="close" disabled={!isSet(filter)} onClick={() => replaceQuery({})}>
          Clear filters
        </Button>
      </div>
    </search>
  )
}

/** How many there are is known of the states that jobs pass through. */
const statusChoice = (status: JobState): { value: JobState; label: string } => {
  const depth: Partial<Record<JobState, number>> = summary.value?.depth ?? {}
  const count = depth[status]
  const name = capitalised(status)
  return { value: status, label: count ? `${name} ${shortCount(count)}` : name }
}

/** A shared address may name a type that no worker has announced here. */
const typeChoices = (types: readonly JobType[], chosen: string | undefined): string[] => {
  const known = types.map(({ type }) => type)
  return chosen === undefined || known.includes(chosen) ? known : [...known, chosen]
}

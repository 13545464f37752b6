import { useSignal } from '@preact/signals'
import type { AuditEntry } from '../../api/answers.ts'
import { replaceQuery, route } from '../../router.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { count } from '../../ui/format.ts'
import { useNames } from '../../ui/names.ts'
import { Empty, Failure, Skeleton } from '../../ui/notes.tsx'
import { More, type Pages, usePages } from '../../ui/pager.tsx'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { ACTION_WORDS, actorOf } from './audit-words.ts'
import { Entries } from './entries.tsx'

const ACTIONS = [
  { value: '', label: 'Everything' },
  ...Object.entries(ACTION_WORDS).map(([value, label]) => ({ value, label })),
]

/** Who did what, when and from where. */
export const View = () => {
  const action = route.value.query.get('action') ?? ''
  const entries = usePages<AuditEntry>('/orgs/me/audit', { action })
  const actor = useSignal('')
  const actors = [...new Set(entries.items.value?.map(actorOf))].sort()
  const loaded = entries.items.value
  const shown = loaded?.filter((entry) => !actor.value || actorOf(entry) === actor.value)
  return (
    <>
      <PageHead
        title="Audit"
        about="Who did what in this organisation, newest first. Entries are never changed."
      />
      <div class="filters narrow">
        <Select
          label="What"
          value={action}
          options={ACTIONS}
          onChange={(value) => {
            actor.value = ''
            replaceQuery({ action: value })
          }}
        />
        <Select
          label="Who"
          value={actor.value}
          options={[{ value: '', label: 'Everybody' }, ...actors]}
          hint="Among the entries that are loaded."
          onChange={(value) => {
            actor.value = value
          }}
        />
      </div>
      <Panel
        title="Entries"
        about={loaded && shown ? sizeOf(shown.length, loaded.length, entries) : undefined}
        actions={<Button kind="quiet" small icon="refresh" label="Load anew" onClick={entries.reload} />}
      >
        {entries.error.value && <Failure error={entries.error.value} retry={entries.reload} />}
        {shown ? <List entries={shown} /> : !entries.error.value && <Skeleton lines={8} />}
        <More pages={entries} />
      </Panel>
    </>
  )
}

const List = ({ entries }: { entries: readonly AuditEntry[] }) => {
  const nameOf = useNames()
  if (entries.length === 0) {
    return (
      <Empty title="Nothing of this kind has happened">
        <p class="muted">Choose something else, or load more.</p>
      </Empty>
    )
  }
  return <Entries entries={entries} nameOf={nameOf} />
}

const sizeOf = (shown: number, loaded: number, { hasMore }: Pages<AuditEntry>): string => {
  const all = `${count(loaded)} ${hasMore.value ? 'are loaded, there are more' : 'in all'}`
  return shown === loaded ? all : `${count(shown)} of them shown: ${all}`
}

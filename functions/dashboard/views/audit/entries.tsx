import { useSignal } from '@preact/signals'
import type { AuditEntry } from '../../api/answers.ts'
import { Badge } from '../../ui/badges.tsx'
import { Code } from '../../ui/code.tsx'
import { DASH } from '../../ui/format.ts'
import { Icon } from '../../ui/icon.tsx'
import { Time } from '../../ui/time.tsx'
import { ACTION_WORDS, actorOf, isWarning, targetOf } from './audit-words.ts'

type Names = (userId: string) => string | undefined

/** A row for each entry, that opens to all that is known of it. */
export const Entries = ({ entries, nameOf }: { entries: readonly AuditEntry[]; nameOf: Names }) => (
  <section
    class="table-frame"
    aria-label="Entries of the audit log"
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    tabIndex={0}
  >
    <table class="audit">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">What</th>
          <th scope="col" class="minor">
            On what
          </th>
          <th scope="col" class="minor">
            From
          </th>
          <td />
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} nameOf={nameOf} />
        ))}
      </tbody>
    </table>
  </section>
)

const Entry = ({ entry, nameOf }: { entry: AuditEntry; nameOf: Names }) => {
  const open = useSignal(false)
  const words = ACTION_WORDS[entry.action] ?? entry.action
  const target = targetOf(entry, nameOf)
  return (
    <>
      <tr class={open.value ? 'open' : ''}>
        <td>
          <Time at={entry.at} />
        </td>
        <td>
          {actorOf(entry)}
          {entry.api_key_id && <span class="muted"> by API key</span>}
        </td>
        <td class="target">
          {isWarning(entry.action) ? <Badge tone="amber">{words}</Badge> : words}
          <span class="narrow-only muted">{target}</span>
        </td>
        <td class="target minor">{target || <span class="muted">{DASH}</span>}</td>
        <td class="minor">{entry.ip ? <code>{entry.ip}</code> : DASH}</td>
        <td class="numeric">
          <button
            type="button"
            class="button quiet small turn"
            aria-expanded={open.value}
            aria-label={`Details of: ${words}`}
            onClick={() => {
              open.value = !open.value
            }}
          >
            <Icon name="chevron" />
          </button>
        </td>
      </tr>
      {open.value && (
        <tr class="details">
          <td colSpan={6}>
            <Code value={entry} label={`Details of entry ${entry.id}`} />
          </td>
        </tr>
      )}
    </>
  )
}

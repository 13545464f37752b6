import { TextArea } from '../../ui/field.tsx'
import type { RuleTexts, Warning } from './rules.ts'

/** Which events count, and which job one becomes. */
export const RuleFields = (props: {
  texts: RuleTexts
  onChange: (texts: RuleTexts) => void
  at: Record<string, string | undefined>
}) => (
  <>
    <TextArea
      label="Filter"
      mono
      rows={5}
      hint="A JSON object, or empty: every event counts."
      value={props.texts.filter}
      error={props.at['/filter']}
      onInput={(filter) => props.onChange({ ...props.texts, filter })}
    />
    <TextArea
      label="Template"
      mono
      rows={11}
      hint="The job that an event becomes: the fields of POST /jobs, with lookups."
      value={props.texts.template}
      error={props.at['/template']}
      onInput={(template) => props.onChange({ ...props.texts, template })}
    />
    <RuleHelp />
  </>
)

/** The language in short. */
const RuleHelp = () => (
  <details class="help">
    <summary>How filters and templates are written</summary>
    <dl class="facts">
      <dt>
        <code>$.a.b[0]</code>
      </dt>
      <dd>
        looks into the body; <code>$headers.x-name</code> into the headers (in lower case);{' '}
        <code>$event.type</code>, <code>.id</code>, <code>.received_at</code> into what is known of the event
      </dd>
      <dt>
        <code>"$.a ?? 0"</code>
      </dt>
      <dd>the value with its type, or a default if there is none</dd>
      <dt>
        <code>{'"by {{ $.a }}"'}</code>
      </dt>
      <dd>text with the value in it</dd>
      <dt>Filter</dt>
      <dd>
        <code>{'{"path": "$.ref", "eq": "main"}'}</code>; also <code>ne gt gte lt lte in not_in</code>{' '}
        <code>contains starts_with ends_with exists</code>, joined by <code>all</code>, <code>any</code> and{' '}
        <code>not</code>
      </dd>
      <dt>Times</dt>
      <dd>
        <code>run_in_seconds</code> and <code>deadline_in_seconds</code> count from the receipt
      </dd>
    </dl>
    <p class="muted">
      The whole language is in docs/templates.md of the repository, the fields of a job in the{' '}
      <a href="/docs">API reference</a>.
    </p>
  </details>
)

/** What will put deliveries into quarantine, told when rules are saved. */
export const Warnings = ({ warnings }: { warnings: readonly Warning[] }) =>
  warnings.length === 0 ? null : (
    <div class="notice" role="status">
      <p>It is saved. But as it is, deliveries will be quarantined:</p>
      <ul class="bullets">
        {warnings.map(({ pointer, detail }) => (
          <li key={pointer + detail}>
            <code>{pointer.replace(/^#\//, '').replaceAll('/', '.')}</code> {detail}
          </li>
        ))}
      </ul>
    </div>
  )

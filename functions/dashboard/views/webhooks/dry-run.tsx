import { useSignal } from '@preact/signals'
import type { Delivery, Replay, SavedSource, Source } from '../../api/answers.ts'
import { patch } from '../../api/api.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import type { Faults } from '../../ui/faults.ts'
import { duration } from '../../ui/format.ts'
import { Failure } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { Outcome } from './outcome.tsx'
import { RuleFields, Warnings } from './rule-fields.tsx'
import { rulesOf, textsOf, type Warning } from './rules.ts'
import { useTrial } from './use-trial.ts'

/** Other rules, tried out on a delivery that came, before they are put to use. */
export const DryRun = (props: { delivery: Delivery; source: Source; onSaved: () => void }) => {
  const stored = textsOf(props.source)
  const texts = useSignal(stored)
  const warnings = useSignal<readonly Warning[]>([])
  const trial = useTrial(props.delivery.id, texts.value)
  const isChanged = texts.value.filter !== stored.filter || texts.value.template !== stored.template
  const { result, faults } = trial.value
  const save = async (): Promise<void> => {
    const saved = await patch<SavedSource>(`/webhooks/sources/${props.source.id}`, rulesOf(texts.value))
    texts.value = textsOf(saved)
    warnings.value = saved.warnings
    showDone(`Saved the filter and template of ${saved.name}. They hold from the next delivery on.`)
    props.onSaved()
  }
  return (
    <Panel
      title="Dry run"
      about="What this delivery would become by another filter or template. Nothing is stored until you save."
    >
      <div class="form">
        <RuleFields
          texts={texts.value}
          at={faults.at}
          onChange={(value) => {
            texts.value = value
            warnings.value = []
          }}
        />
        <Warnings warnings={warnings.value} />
        <div class="actions">
          <Button kind="primary" disabled={!isChanged || result === undefined} onClick={save}>
            Save to the source
          </Button>
          <Button
            disabled={!isChanged}
            onClick={() => {
              texts.value = stored
            }}
          >
            Back to the saved ones
          </Button>
        </div>
        {faults.rest !== undefined && <Failure error={faults.rest} />}
        <Becomes result={result} isRefused={hasFaults(faults)} />
      </div>
    </Panel>
  )
}

const hasFaults = ({ at, rest }: Faults): boolean => rest !== undefined || Object.keys(at).length > 0

const Becomes = ({ result, isRefused }: { result: Replay | undefined; isRefused: boolean }) => (
  <div class="becomes" role="status" aria-label="Result of the dry run">
    {result === undefined ? (
      <p class="muted">{isRefused ? 'The draft cannot be tried out as it is.' : 'It is being tried out…'}</p>
    ) : (
      <>
        <p>
          <Outcome status={result.status} /> {WORDS[result.status]}{' '}
          {result.errors.length === 0 && result.reason}
        </p>
        {result.errors.length > 0 && (
          <ul class="bullets">
            {result.errors.map(({ pointer, detail }) => (
              <li key={pointer + detail}>
                <code>{pointer.replace(/^#\//, '').replaceAll('/', '.')}</code> {detail}
              </li>
            ))}
          </ul>
        )}
        {result.job && <Code label="Job that it would make" value={result.job} />}
        {result.prediction && (
          <p class="muted">
            It would probably run for {duration(result.prediction.p50_ms)}, and in nine of ten cases for less
            than {duration(result.prediction.p90_ms)}.
          </p>
        )}
      </>
    )}
  </div>
)

const WORDS: Record<Replay['status'], string> = {
  accepted: 'It would make this job.',
  duplicate: 'Its event has a job already, so it would make none.',
  filtered: 'The filter would not take it.',
  quarantined: 'It would become no job.',
}

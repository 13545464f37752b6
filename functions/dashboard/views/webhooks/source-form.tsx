import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { CreatedSource, SavedSource, Source } from '../../api/answers.ts'
import { patch, post } from '../../api/api.ts'
import { Select, TextArea, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { readJson, toJsonText } from '../../ui/json-text.ts'
import { showDone } from '../../ui/toasts.tsx'
import { RuleFields } from './rule-fields.tsx'
import { type RuleTexts, rulesOf, textsOf } from './rules.ts'
import { SavedNote } from './saved-note.tsx'
import { SCHEME_OPTIONS, SCHEMES, type SchemeName } from './schemes.ts'
import { verificationOf } from './verification.ts'

const FIELDS = ['/name', '/scheme', '/secret', '/verification', '/filter', '/template']

/** Makes a source and shows its secret, or changes the one that is given. */
export const SourceForm = (props: {
  source?: Source | undefined
  onSaved: () => void
  onClose: (made?: Source) => void
}) => {
  const { source } = props
  const name = useSignal(source?.name ?? '')
  const scheme = useSignal<SchemeName>(source?.scheme ?? 'github')
  const secret = useSignal('')
  const known = source ? toJsonText(verificationOf(source)) : '{}'
  const verification = useSignal(known)
  // Undefined: nobody has changed them yet. The example of a new source goes with its scheme.
  const texts = useSignal<RuleTexts | undefined>(undefined)
  const saved = useSignal<SavedSource | CreatedSource | undefined>(undefined)
  const stored = useMemo(() => source && textsOf(source), [])
  const shown = texts.value ?? stored ?? textsOf(SCHEMES[scheme.value])

  const save = async (): Promise<void> => {
    const request = {
      name: name.value,
      // What was not touched is not sent: somebody else may have changed it meanwhile.
      ...(shown !== stored && rulesOf(shown)),
      ...(scheme.value === 'hmac' &&
        verification.value !== known && { verification: readJson(verification.value, '/verification') }),
    }
    if (source) {
      const answer = await patch<SavedSource>(`/webhooks/sources/${source.id}`, request)
      props.onSaved()
      showDone(`Saved ${answer.name}. It holds from the next delivery on.`)
      if (answer.warnings.length > 0) saved.value = answer
      else props.onClose(answer)
    } else {
      const given = secret.value.trim()
      saved.value = await post<CreatedSource>('/webhooks/sources', {
        ...request,
        scheme: scheme.value,
        ...(given && { secret: given }),
      })
      props.onSaved()
    }
  }

  if (saved.value) return <SavedNote source={saved.value} onClose={() => props.onClose(saved.value)} />
  return (
    <FormDialog
      title={source ? `Change ${source.name}` : 'New source'}
      action={source ? 'Save' : 'Create source'}
      wide
      fields={FIELDS}
      onSubmit={save}
      onClose={() => props.onClose()}
    >
      {(at) => (
        <>
          <div class="form-row">
            <TextField
              label="Name"
              required
              maxLength={200}
              placeholder="Pushes to main"
              value={name.value}
              error={at['/name']}
              onInput={(value) => {
                name.value = value
              }}
            />
            <Select
              label="Scheme"
              hint="How the sender signs."
              value={scheme.value}
              options={SCHEME_OPTIONS}
              disabled={source !== undefined}
              error={at['/scheme']}
              onChange={(value) => {
                scheme.value = value as SchemeName
              }}
            />
            {!source && (
              <TextField
                label="Secret"
                literal
                autoComplete="off"
                hint="If the sender has made one. Empty: one is made."
                value={secret.value}
                error={at['/secret']}
                onInput={(value) => {
                  secret.value = value
                }}
              />
            )}
          </div>
          {scheme.value === 'hmac' && (
            <TextArea
              label="Verification"
              mono
              rows={4}
              hint='Settings that differ from the defaults, such as {"signature_header": "x-signature", "timestamp_header": "x-time", "tolerance_seconds": 60, "id_path": "$.id"}. Without a timestamp_header, a recorded delivery can be replayed at any time.'
              value={verification.value}
              error={at['/verification']}
              onInput={(value) => {
                verification.value = value
              }}
            />
          )}
          <RuleFields
            texts={shown}
            at={at}
            onChange={(value) => {
              texts.value = value
            }}
          />
        </>
      )}
    </FormDialog>
  )
}

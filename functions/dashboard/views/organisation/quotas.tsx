import { useSignal } from '@preact/signals'
import { QUOTAS, type Quota } from '../../../../db/rules/quotas.ts'
import type { ActiveOrg, Quotas } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { useReloadOnEvents } from '../../live/live.ts'
import { may } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { EditQuotas } from './edit-quotas.tsx'
import { QUOTA_WORDS } from './quota-words.ts'

/** What the organisation may use, and has used. */
export const QuotaPanel = ({ org }: { org: ActiveOrg }) => {
  const quotas = useResource((signal) => get<Quotas>('/orgs/me/quotas', {}, signal))
  const editing = useSignal(false)
  useReloadOnEvents(quotas.reload, undefined, 5_000)
  return (
    <Panel
      title="Quotas"
      about={
        may('platform')
          ? 'What the organisation may use.'
          : 'What the organisation may use. An operator can change it.'
      }
      actions={
        may('platform') && (
          <Button
            small
            icon="edit"
            onClick={() => {
              editing.value = true
            }}
          >
            Change
          </Button>
        )
      }
    >
      <Loaded resource={quotas}>
        {(all) => (
          <>
            <ul class="quotas">
              {QUOTAS.map((quota) => (
                <Used key={quota} quota={quota} {...all[quota]} />
              ))}
              <li>
                <span>Share of the workers</span>
                <span class="numeric">weight {all.weight}</span>
              </li>
            </ul>
            {editing.value && (
              <EditQuotas
                org={org}
                quotas={all}
                onChanged={quotas.reload}
                onClose={() => {
                  editing.value = false
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

/** From here on the bar warns. */
const MUCH = 0.8

const Used = ({ quota, used, limit }: { quota: Quota; used: number; limit: number | null }) => {
  const { label, text } = QUOTA_WORDS[quota]
  const share = limit === null ? 0 : limit === 0 ? 1 : used / limit
  return (
    <li class={share >= 1 ? 'full' : share >= MUCH ? 'much' : ''}>
      <span>{label}</span>
      <span class="numeric">
        {text(used)} <span class="muted">{limit === null ? 'without a limit' : `of ${text(limit)}`}</span>
      </span>
      {limit !== null && (
        <span class="track" aria-hidden="true">
          <span style={{ width: `${Math.min(100, share * 100)}%`, minWidth: used > 0 ? '2px' : 0 }} />
        </span>
      )}
    </li>
  )
}

import { useSignal } from '@preact/signals'
import type { Delivery, Replay } from '../../api/answers.ts'
import { post } from '../../api/api.ts'
import { linkTo, navigate } from '../../router.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { showDone } from '../../ui/toasts.tsx'
import { OUTCOME_WORDS } from './outcome.tsx'

/** Runs a delivery again, by the rules that the source has now. Where that makes a second job, it asks first. */
export const ReplayButton = ({ delivery }: { delivery: Delivery }) => {
  const asking = useSignal(false)
  const replay = async (): Promise<void> => {
    const { status, reason, job_id, delivery_id } = await post<Replay>(
      `/webhooks/deliveries/${delivery.id}/replay`,
    )
    const words = [`Replayed: ${status}.`, status === 'accepted' ? '' : (reason ?? OUTCOME_WORDS[status])]
    const link = job_id ? { href: linkTo(`/jobs/${job_id}`), text: 'Look at the job' } : undefined
    showDone(words.filter(Boolean).join(' '), link)
    if (delivery_id) navigate(`/webhooks/${delivery.source_id}/${delivery_id}`)
  }
  return (
    <>
      <Button
        icon="refresh"
        onClick={() => {
          if (delivery.job_id === null) return replay()
          asking.value = true
        }}
      >
        Replay
      </Button>
      {asking.value && (
        <Confirm
          title="Replay this delivery?"
          action="Make another job"
          onConfirm={replay}
          onClose={() => {
            asking.value = false
          }}
        >
          <p>
            Its event has a job already. A replay makes another one, by the filter and template that the
            source has now.
          </p>
        </Confirm>
      )}
    </>
  )
}

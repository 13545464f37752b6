import { useSignal } from '@preact/signals'
import type { CallbackSecret as Secret } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { Refusal } from '../../api/refusal.ts'
import { useResource } from '../../api/use-resource.ts'
import { may } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { Time } from '../../ui/time.tsx'
import { RotateSecret } from './rotate-secret.tsx'

/** What callbacks are signed with, as far as that is shown. */
export const CallbackSecret = () => {
  const resource = useResource(look)
  const rotating = useSignal(false)
  return (
    <Loaded resource={resource} bones={<Skeleton lines={1} />}>
      {({ secret }) => (
        <div class="state-line">
          <p>
            {secret ? (
              <>
                Signed with the secret that ends in <code>…{secret.hint}</code>, made{' '}
                <Time at={secret.created_at} />.
                {secret.previous_expires_at && (
                  <>
                    {' '}
                    The one before signs, too, and ends <Time at={secret.previous_expires_at} />.
                  </>
                )}
              </>
            ) : (
              `There is no secret yet: ${may('webhooks:manage') ? 'make one' : 'an org_admin can make one'}, so that receivers can verify who tells them.`
            )}
          </p>
          {may('webhooks:manage') && (
            <Button
              small
              icon="keys"
              onClick={() => {
                rotating.value = true
              }}
            >
              {secret ? 'Replace the secret' : 'Make a secret'}
            </Button>
          )}
          {rotating.value && (
            <RotateSecret
              name="callbacks"
              path="/callbacks/secret"
              isFirst={secret === null}
              onDone={resource.reload}
              onClose={() => {
                rotating.value = false
              }}
            />
          )}
        </div>
      )}
    </Loaded>
  )
}

const look = async (signal: AbortSignal): Promise<{ secret: Secret | null }> => {
  try {
    return { secret: await get<Secret>('/callbacks/secret', {}, signal) }
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return { secret: null }
    throw error
  }
}

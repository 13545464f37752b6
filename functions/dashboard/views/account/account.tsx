import { user } from '../../session/session.ts'
import { PageHead } from '../../ui/panel.tsx'
import { Password } from './password.tsx'

/** The account of whoever is signed in, the same in every organisation. */
export const View = () => (
  <>
    <PageHead title="Account" about={<strong>{user.value?.username}</strong>} />
    <div class="grid">
      <Password />
    </div>
  </>
)

import type { z } from '@hono/zod-openapi'
import type { Account } from '../../db/queries/accounts.ts'
import { ACCESS_TOKEN_SECONDS, signAccessToken } from './access-token.ts'
import type { KeyRing } from './key-ring.ts'
import type { activeSession } from './schemas.ts'

/** A session as the API shows it, with a fresh access token. */
export const viewSession = async (
  keys: KeyRing,
  account: Account & { session_id: string; secret: string },
): Promise<z.output<typeof activeSession>> => ({
  user: { id: account.user_id, username: account.username, role: account.role, org_id: account.org_id },
  access_token: await signAccessToken(keys, account),
  expires_in: ACCESS_TOKEN_SECONDS,
})

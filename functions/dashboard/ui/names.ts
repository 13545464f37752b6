import type { Member, Page } from '../api/answers.ts'
import { get } from '../api/api.ts'
import { useResource } from '../api/use-resource.ts'

/** The names of members, for what the API tells by id. Of whoever has left, or is not known yet, there is none. */
export const useNames = (): ((userId: string) => string | undefined) => {
  const members = useResource((signal) => get<Page<Member>>('/orgs/me/members', { limit: 100 }, signal))
  const names = new Map(members.data.value?.items.map(({ user_id, username }) => [user_id, username]))
  return (userId) => names.get(userId)
}

import type { ActiveOrg } from '../../api/answers.ts'
import { get } from '../../api/api.ts'
import { useResource } from '../../api/use-resource.ts'
import { may } from '../../session/session.ts'
import { CopyButton } from '../../ui/code.tsx'
import { counted } from '../../ui/format.ts'
import { Loaded, Skeleton } from '../../ui/notes.tsx'
import { PageHead } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'
import { OrgData } from './delete-org.tsx'
import { Invitations } from './invitations.tsx'
import { Leave } from './leave.tsx'
import { Members } from './members.tsx'
import { QuotaPanel } from './quotas.tsx'
import { Users } from './users.tsx'

/** The organisation, who is in it, and what it may use. */
export const View = () => {
  const org = useResource((signal) => get<ActiveOrg>('/orgs/me', {}, signal))
  return (
    <Loaded resource={org} bones={<Skeleton height="60vh" />}>
      {(active) => (
        <>
          <PageHead title="Organisation" about={<About org={active} />}>
            {active.role !== null && <Leave org={active} />}
          </PageHead>
          <div class="grid">
            <Members onChange={org.reload} />
            {may('org:manage') && <Invitations org={active} />}
            <QuotaPanel org={active} />
            {may('platform') && <Users />}
            {may('org:manage') && <OrgData org={active} />}
          </div>
        </>
      )}
    </Loaded>
  )
}

const About = ({ org }: { org: ActiveOrg }) => (
  <span class="org-about">
    <strong>{org.name}</strong> <code>{org.id}</code>
    <CopyButton text={org.id} label="Copy the id" /> · {counted(org.members, 'member')} · made{' '}
    <Time at={org.created_at} />
  </span>
)

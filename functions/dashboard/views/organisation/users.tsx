import type { Account } from '../../api/answers.ts'
import { Badge } from '../../ui/badges.tsx'
import { ShortId } from '../../ui/code.tsx'
import { count } from '../../ui/format.ts'
import { PagedTable } from '../../ui/paged-table.tsx'
import { usePages } from '../../ui/pager.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Time } from '../../ui/time.tsx'

/** For operators: everybody who has an account. */
export const Users = () => {
  const users = usePages<Account>('/auth/users')
  return (
    <Panel wide title="Users" about="Everybody who has an account, in all organisations.">
      <PagedTable
        label="Everybody who has an account"
        pages={users}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Name', cell: ({ username }) => username },
          { title: 'Id', minor: true, cell: ({ id }) => <ShortId id={id} /> },
          {
            title: 'Platform',
            cell: ({ is_admin }) => (is_admin ? <Badge tone="violet">admin</Badge> : null),
          },
          { title: 'Organisations', numeric: true, cell: ({ org_ids }) => count(org_ids.length) },
          { title: 'Registered', cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
      />
    </Panel>
  )
}

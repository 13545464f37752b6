import type { ModelCard, ModelVersion } from '../../api/answers.ts'
import { Badge } from '../../ui/badges.tsx'
import { count, DASH } from '../../ui/format.ts'
import { Empty } from '../../ui/notes.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { decisionOf, errorText, judgementOf } from './words.ts'

const STATUS = {
  champion: { tone: 'green', text: 'champion' },
  retired: { tone: 'neutral', text: 'retired' },
  rejected: { tone: 'amber', text: 'rejected' },
  rolled_back: { tone: 'red', text: 'rolled back' },
} as const

/** Every version, and why it is used or not. */
export const Versions = ({ model }: { model: ModelCard }) => (
  <Panel
    wide
    title="Versions"
    about="A challenger is promoted only if it is better than the champion beyond doubt: z above 2, on executions that neither was trained on."
  >
    <Table
      label="Versions of the network"
      rows={model.versions}
      keyOf={({ version }) => String(version)}
      empty={<Empty title="There is no version yet" />}
      columns={[
        { title: 'Version', numeric: true, cell: ({ version }) => version },
        {
          title: 'Status',
          cell: ({ status }) => <Badge tone={STATUS[status].tone}>{STATUS[status].text}</Badge>,
        },
        { title: 'Decided', minor: true, cell: (one) => <Time at={one.decided_at ?? one.created_at} /> },
        { title: 'From', numeric: true, minor: true, cell: ({ parent }) => parent ?? DASH },
        { title: 'Trained on', numeric: true, minor: true, cell: ({ trained_on }) => count(trained_on) },
        { title: 'Its error', numeric: true, minor: true, cell: (one) => errorText(judged(one)?.own) },
        { title: "Other's error", numeric: true, minor: true, cell: (one) => errorText(judged(one)?.rival) },
        { title: 'z', numeric: true, minor: true, cell: (one) => judged(one)?.z.toFixed(2) ?? DASH },
        { title: 'Decision', cell: (one) => <span class="sentence">{decisionOf(one)}</span> },
      ]}
    />
  </Panel>
)

const judged = ({ evaluation }: ModelVersion) => judgementOf(evaluation)

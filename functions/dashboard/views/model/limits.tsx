import type { ModelCard } from '../../api/answers.ts'
import { count } from '../../ui/format.ts'
import { Panel } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { FAULT_NAMES } from './words.ts'

/** What went wrong, and what cannot go right. */
export const Limits = ({ model }: { model: ModelCard }) => (
  <Panel title="Faults and known limits">
    <Table
      label="Faults"
      rows={model.faults}
      keyOf={({ reason }) => reason}
      empty={<p class="muted">No faults: no job went without the network, or without a prediction.</p>}
      columns={[
        { title: 'Jobs predicted without the network', cell: ({ reason }) => FAULT_NAMES[reason] ?? reason },
        { title: 'Times', numeric: true, cell: ({ faults }) => count(faults) },
        { title: 'Last', cell: ({ last_at }) => <Time at={last_at} /> },
      ]}
    />
    <ul class="limits">
      {model.known_limits.map((limit) => (
        <li key={limit}>{limit}</li>
      ))}
    </ul>
    <details class="inputs">
      <summary>The {count(model.inputs.length)} inputs of the network</summary>
      <p class="muted">{model.inputs.join(' · ')}</p>
    </details>
  </Panel>
)

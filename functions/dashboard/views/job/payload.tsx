import type { Job } from '../../api/answers.ts'
import { Code } from '../../ui/code.tsx'
import { Panel } from '../../ui/panel.tsx'

export const Payload = ({ job }: { job: Job }) => (
  <Panel title="Payload">
    <Code label="The payload" value={job.payload} />
  </Panel>
)

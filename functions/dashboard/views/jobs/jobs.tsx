import { PageHead } from '../../ui/panel.tsx'
import type { ViewProps } from '../index.ts'
import { JobView } from '../job/job.tsx'

export const View = ({ rest: [id] }: ViewProps) => (id ? <JobView id={id} /> : <PageHead title="Jobs" />)

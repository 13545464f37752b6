import { PageHead } from '../../ui/panel.tsx'

export const JobView = ({ id }: { id: string }) => <PageHead title="Job" about={id} />

import { PageHead } from '../../ui/panel.tsx'

export const View = () => <PageHead title="Dead letters" />

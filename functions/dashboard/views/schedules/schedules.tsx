import type { ViewProps } from '../index.ts'
import { ScheduleList } from './schedule-list.tsx'
import { SchedulePage } from './schedule-page.tsx'

export const View = ({ rest: [id] }: ViewProps) => (id ? <SchedulePage key={id} id={id} /> : <ScheduleList />)

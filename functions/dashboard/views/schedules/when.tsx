import { cronInWords } from './cron-words.ts'

/** When it ticks: in words if there are any, and as it was written. */
export const When = ({ cron, timezone }: { cron: string; timezone: string }) => {
  const words = cronInWords(cron)
  return (
    <>
      {words && `${words}, `}
      {timezone} · <code class="whole">{cron}</code>
    </>
  )
}

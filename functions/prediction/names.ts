/** What predictions are made from, and by whom, for people. */
export const INPUT_NAMES: readonly string[] = [
  'running mean of the stream',
  'deviation of the stream',
  'executions of the stream',
  "estimate of the organisation's jobs of the type",
  'estimate of the type',
  'estimate of all types',
]
export const EXPERTS: readonly string[] = ['stream', 'type', 'default']

import { readFileSync } from 'node:fs'

export type DocumentedJob = { name: string; type: string; payload: Record<string, unknown> }

/** The jobs of docs/ml.md: those in blocks of JSON, and that of the command. */
export const documentedJobs = (): DocumentedJob[] => {
  const page = readFileSync('docs/ml.md', 'utf8')
  const blocks = [...page.matchAll(/```json\n(.*?)```/gs), ...page.matchAll(/^curl .* -d '(.*?)'$/gms)]
  return blocks.map(([, json]) => JSON.parse(json ?? '')).filter((block) => 'type' in block)
}

/** The job of the command that stands first on the page. */
export const documentedCommand = (): DocumentedJob =>
  documentedJobs().find(({ name }) => name === 'orders-next-week') as DocumentedJob

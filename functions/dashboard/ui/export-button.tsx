import { refusalOf } from '../api/refusal.ts'
import { accessToken } from '../session/session.ts'
import { Button } from './button.tsx'

/** Saves an export as a file. */
export const ExportButton = (props: { path: string; file: string }) => (
  <Button icon="docs" onClick={async () => offer(await load(props.path), props.file)}>
    Export data
  </Button>
)

/** Loads all parts as blobs, which a browser keeps on disk if they are large. */
const load = async (path: string): Promise<Blob> => {
  const parts: Blob[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const response: Response = await fetch(cursor ? `${path}?cursor=${encodeURIComponent(cursor)}` : path, {
      headers: { authorization: `Bearer ${await accessToken()}` },
    })
    if (!response.ok) throw await refusalOf(response)
    const part = await response.blob()
    parts.push(part)
    cursor = await cursorOf(part)
  }
  return new Blob(parts, { type: 'application/x-ndjson' })
}

const LAST_LINE_BYTES = 4_096

/** Where the next part starts, or undefined if this was the last. */
const cursorOf = async (part: Blob): Promise<string | undefined> => {
  const end = (await part.slice(-LAST_LINE_BYTES).text()).trimEnd()
  const last = JSON.parse(end.slice(end.lastIndexOf('\n') + 1)) as { type: string; cursor?: string }
  if (last.type !== 'end' && last.type !== 'continue') throw new Error('The export was cut off. Try again.')
  return last.cursor
}

const offer = (blob: Blob, file: string): void => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = file
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

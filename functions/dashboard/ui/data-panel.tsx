import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { refusalOf } from '../api/refusal.ts'
import { accessToken } from '../session/session.ts'
import { Button } from './button.tsx'
import { Panel } from './panel.tsx'

/** Exports the data of an organisation or an account as a file, and opens the dialog that deletes it. */
export const DataPanel = (props: {
  title: string
  about: string
  exported: { path: string; file: string }
  action: string
  dialog: (onClose: () => void) => ComponentChildren
}) => {
  const asking = useSignal(false)
  const ask = (value: boolean) => () => {
    asking.value = value
  }
  const { path, file } = props.exported
  return (
    <Panel
      title={props.title}
      about={props.about}
      actions={
        <>
          <Button icon="docs" onClick={async () => offer(await load(path), file)}>
            Export data
          </Button>
          <Button kind="danger" icon="trash" onClick={ask(true)}>
            {props.action}
          </Button>
        </>
      }
    >
      {asking.value && props.dialog(ask(false))}
    </Panel>
  )
}

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
  const last = readLine(end.slice(end.lastIndexOf('\n') + 1))
  if (last?.type !== 'end' && last?.type !== 'continue') throw new Error('The export was cut off. Try again.')
  return last.cursor
}

/** Returns undefined if the line is incomplete. */
const readLine = (line: string): { type: string; cursor?: string } | undefined => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const offer = (blob: Blob, file: string): void => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = file
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

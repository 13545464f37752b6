/** On a terminal one line that fills up; elsewhere a line now and then. */
export const createProgressBar = (stream: NodeJS.WriteStream) => {
  const startedAtMs = performance.now()
  let shownAtMs = Number.NEGATIVE_INFINITY
  const pauseMs = stream.isTTY ? 100 : 10_000

  return {
    show: (done: number, doing: string): void => {
      const nowMs = performance.now()
      if (nowMs - shownAtMs < pauseMs) return
      shownAtMs = nowMs
      const filled = Math.round(done * WIDTH)
      const seconds = Math.round((nowMs - startedAtMs) / 1000)
      const line = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${Math.round(done * 100)} % · ${seconds} s · ${doing}`
      stream.write(stream.isTTY ? `\r\x1b[K${line}` : `${line}\n`)
    },
    clear: (): void => {
      if (stream.isTTY) stream.write('\r\x1b[K')
    },
  }
}

const WIDTH = 30

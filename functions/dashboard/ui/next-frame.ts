/** Runs it before the next picture is drawn. A page in the background draws none: there a second is soon enough. */
export const nextFrame = (run: () => void): void => {
  const once = (): void => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
    run()
  }
  const frame = requestAnimationFrame(once)
  const timer = setTimeout(once, 1_000)
}

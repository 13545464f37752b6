/** The match of a sticky pattern that begins exactly there. */
export const matchAt = (sticky: RegExp, text: string, from: number): RegExpExecArray | null => {
  sticky.lastIndex = from
  return sticky.exec(text)
}

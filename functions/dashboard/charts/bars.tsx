export type Bar = { label: string; value: number; text: string; strong?: boolean }

/** Horizontal bars with their numbers beside them: they need no axis, and nobody who reads them aloud misses one. */
export const Bars = ({ bars, max }: { bars: readonly Bar[]; max?: number }) => {
  const largest = max ?? Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE)
  return (
    <ul class="bars">
      {bars.map(({ label, value, text, strong }) => (
        <li key={label} class={strong ? 'strong' : ''}>
          <span>{label}</span>
          <span class="track" aria-hidden="true">
            <span style={{ width: `${Math.min(100, (100 * value) / largest)}%` }} />
          </span>
          <span class="numeric">{text}</span>
        </li>
      ))}
    </ul>
  )
}

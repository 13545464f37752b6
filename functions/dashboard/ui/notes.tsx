import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Resource } from '../api/use-resource.ts'
import { link } from '../live/live.ts'
import { Button } from './button.tsx'
import { describeFailure } from './toasts.tsx'

/** There is nothing yet, and what to do about it. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children}
  </div>
)

/** What went wrong. What failed while the connection was lost is tried again by itself once it is back. */
export const Failure = ({ error, retry }: { error: unknown; retry?: () => void }) => {
  const isLive = link.value.kind === 'live'
  const wasLive = useRef(isLive)
  useEffect(() => {
    if (isLive && !wasLive.current) retry?.()
    wasLive.current = isLive
  }, [isLive])
  return (
    <div class="failure" role="alert">
      <p>{describeFailure(error)}</p>
      {retry && (
        <Button small icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** Stands where content will be, in its size. */
export const Skeleton = ({ lines = 4, height }: { lines?: number; height?: string }) => (
  <div class="skeleton" role="status" aria-label="Loading">
    {height ? (
      <span class="bone" style={{ height }} />
    ) : (
      Array.from({ length: lines }, (_, n) => (
        <span key={n} class="bone" style={{ width: `${92 - ((n * 17) % 40)}%` }} />
      ))
    )}
  </div>
)

/** What a resource shows: bones, what went wrong, or its content. */
export const Loaded = <Value,>({
  resource,
  bones,
  children,
}: {
  resource: Resource<Value>
  bones?: ComponentChildren
  children: (value: Value) => ComponentChildren
}) => {
  const { data, error, reload } = resource
  if (error.value && data.value === undefined) return <Failure error={error.value} retry={reload} />
  if (data.value === undefined) return <>{bones ?? <Skeleton />}</>
  return <>{children(data.value)}</>
}

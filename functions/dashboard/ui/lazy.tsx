import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Failure, Skeleton } from './notes.tsx'

/** What most visits do not need is a chunk of its own, loaded when it is first shown. */
export const Lazy = <Module,>(props: {
  load: () => Promise<Module>
  bones?: ComponentChildren
  children: (module: Module) => ComponentChildren
}) => {
  const module = useSignal<Module | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  useEffect(() => {
    props.load().then(
      (loaded) => {
        module.value = loaded
      },
      (reason: unknown) => {
        error.value = reason
      },
    )
  }, [])
  if (error.value !== undefined) return <Failure error={error.value} retry={() => location.reload()} />
  if (module.value === undefined) return <>{props.bones ?? <Skeleton height="60vh" />}</>
  return <>{props.children(module.value)}</>
}

import { useEffect, useRef } from 'preact/hooks'

/** Looks anew when something that the stream tells has become another. The first that it tells is no change. */
export const useReloadOnChange = (told: unknown, reload: () => void): void => {
  const known = useRef(told)
  useEffect(() => {
    if (known.current !== undefined && known.current !== told) reload()
    known.current = told
  }, [told])
}

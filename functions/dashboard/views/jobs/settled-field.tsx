import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { TextField } from '../../ui/field.tsx'

const SETTLES_MS = 300

/** A field that tells of its value when somebody has stopped to type. What comes from elsewhere replaces what is there. */
export const SettledField = (props: {
  label: string
  value: string
  onSettle: (value: string) => void
  type?: 'text' | 'search'
  placeholder?: string
}) => {
  const { value, onSettle, ...rest } = props
  const typed = useSignal(value)
  const told = useRef(value)
  const timer = useRef<number | undefined>(undefined)
  const newest = useRef(onSettle)
  newest.current = onSettle
  useEffect(() => {
    if (value === told.current) return
    clearTimeout(timer.current)
    told.current = value
    typed.value = value
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const input = (text: string): void => {
    typed.value = text
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      told.current = text.trim()
      newest.current(told.current)
    }, SETTLES_MS)
  }
  return <TextField {...rest} literal maxLength={200} value={typed.value} onInput={input} />
}

import { useSignal } from '@preact/signals'

/** Which of the dialogs of a component is open, if one is. */
export const useDialog = <Name extends string>() => {
  const open = useSignal<Name | undefined>(undefined)
  return {
    isOpen: (name: Name): boolean => open.value === name,
    /** For the button that opens it. */
    opens: (name: Name) => (): void => {
      open.value = name
    },
    close: (): void => {
      open.value = undefined
    },
  }
}

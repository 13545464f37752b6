import { useId } from 'preact/hooks'
import { PERMISSIONS } from '../../../auth/permissions.ts'

/** What a key may do, in the words of the permissions. */
export const ScopeList = (props: {
  scopes: readonly (keyof typeof PERMISSIONS)[]
  chosen: readonly string[]
  onChange: (chosen: string[]) => void
}) => {
  const id = useId()
  return (
    <fieldset class="scopes">
      <legend>It may</legend>
      {props.scopes.map((scope) => (
        <div key={scope} class="choice">
          <input
            id={`${id}-${scope}`}
            type="checkbox"
            checked={props.chosen.includes(scope)}
            onChange={(event) => {
              const others = props.chosen.filter((one) => one !== scope)
              props.onChange(event.currentTarget.checked ? [...others, scope] : others)
            }}
          />
          <label for={`${id}-${scope}`}>
            {PERMISSIONS[scope].about} <code class="id">{scope}</code>
          </label>
        </div>
      ))}
      {props.chosen.length === 0 && <p class="error">Choose at least one.</p>}
    </fieldset>
  )
}

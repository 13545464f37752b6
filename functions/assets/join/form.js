import { h } from '../docs/dom.js'
import { part, write } from './views.js'

/** @import { Explanation, Field } from './words.js' */
/** @typedef {'register' | 'login'} Mode */
/** @typedef {{ mode: Mode, username: string, password: string }} Entry */

const form = part('form', HTMLFormElement)
const choices = part('choices', HTMLFieldSetElement)
const reveal = part('reveal', HTMLInputElement)
const submit = part('submit', HTMLButtonElement)

/** @type {Record<Field, HTMLInputElement>} */
const inputs = { username: part('username', HTMLInputElement), password: part('password', HTMLInputElement) }

/**
 * Hands over what was typed, and shows what `handle` answers. Nothing can be sent again before it has.
 *
 * @param {(entry: Entry) => Promise<Explanation | undefined>} handle
 */
export const onSubmit = (handle) => {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const entry = { mode: mode(), username: inputs.username.value.trim(), password: inputs.password.value }
    clearProblem()
    hidePassword()
    setBusy(true)
    const problem = await handle(entry)
    setBusy(false)
    if (problem) showProblem(problem)
  })
  choices.addEventListener('change', applyMode)
  reveal.addEventListener('change', () => {
    inputs.password.type = reveal.checked ? 'text' : 'password'
  })
  // A browser that restores the page restores the choice, too.
  applyMode()
}

/** Hides registration where only the operator creates accounts. */
export const signInOnly = () => {
  part('login', HTMLInputElement).checked = true
  choices.hidden = true
  applyMode()
}

/** Says what went wrong and leads to where it can be put right. @param {Explanation} problem */
const showProblem = ({ title, lines, fields }) => {
  part('problem', HTMLElement).replaceChildren(
    h('p', {}, h('strong', {}, title)),
    ...lines.map((line) => h('p', {}, line)),
  )
  for (const field of fields) inputs[field].setAttribute('aria-invalid', 'true')
  describe()
  const [first] = fields
  if (first) inputs[first].select()
  const target = first ? inputs[first] : submit
  target.focus()
}

/** The password has done its work. */
export const emptyForm = () => form.reset()

const clearProblem = () => {
  part('problem', HTMLElement).replaceChildren()
  for (const input of Object.values(inputs)) input.removeAttribute('aria-invalid')
  describe()
}

/** Browsers offer what was typed into text boxes again, and a password is not for that. */
const hidePassword = () => {
  reveal.checked = false
  inputs.password.type = 'password'
}

/** @param {boolean} isBusy */
const setBusy = (isBusy) => {
  submit.disabled = isBusy
  choices.disabled = isBusy
  write('progress', isBusy ? 'Joining…' : '')
  labelSubmit(isBusy)
}

/** @returns {Mode} */
const mode = () => (part('register', HTMLInputElement).checked ? 'register' : 'login')

/** The rules for a new password say nothing about one from the time before them. */
const applyMode = () => {
  const isNew = mode() === 'register'
  inputs.username.minLength = isNew ? 3 : 0
  inputs.password.minLength = isNew ? 8 : 0
  inputs.password.autocomplete = isNew ? 'new-password' : 'current-password'
  part('password-hint', HTMLElement).hidden = !isNew
  clearProblem()
  labelSubmit(false)
}

/** @param {boolean} isBusy */
const labelSubmit = (isBusy) => {
  const label = mode() === 'register' ? 'Create account and join' : 'Sign in and join'
  submit.textContent = isBusy ? 'Joining…' : label
}

/** Ties to each box what is said about it. */
const describe = () => {
  for (const [name, input] of Object.entries(inputs)) {
    const about = [
      name === 'password' && mode() === 'register' && 'password-hint',
      input.hasAttribute('aria-invalid') && 'problem',
    ]
    input.setAttribute('aria-describedby', about.filter(Boolean).join(' '))
  }
}

import { codeBlock } from './code-block.js'
import { curlCommand } from './curl.js'
import { h } from './dom.js'
import { inline } from './prose.js'

/** @import { Api } from '../../api-docs/page-model.ts' */

/**
 * From nothing to a job's result. Each step keeps what the next one needs in a shell variable, without jq:
 * pasting all three works in any POSIX shell.
 */
const STEPS = [
  {
    id: 'post-auth-register',
    title: 'Register',
    text: 'Answers with tokens for your new account. The access token goes into `$TOKEN`. If the name is taken, choose another.',
    keep: { answer: 'SESSION', variable: 'TOKEN', field: 'access_token' },
  },
  {
    id: 'post-jobs',
    title: 'Submit a job',
    text: 'The job is stored when the answer arrives; a worker picks it up at once. Its id goes into `$ID`.',
    keep: { answer: 'JOB', variable: 'ID', field: 'id' },
  },
  {
    id: 'get-jobs-id',
    title: 'Look at it',
    text: 'Run it until `status` is `completed`: then `result` has what the handler returned.',
  },
]

/** @param {Api} api */
export const startHere = ({ operations, resolve }) => {
  const items = STEPS.flatMap(({ id, title, text, keep }) => {
    const operation = operations.find((one) => one.id === id)
    if (!operation) return []
    const command = curlCommand(operation, resolve)
    const script = keep ? keeping(command, keep) : command
    return h(
      'li',
      {},
      h('div', {}, h('h3', {}, title), h('p', {}, inline(text))),
      codeBlock({ title: 'Shell', about: title, language: 'shell', text: script }),
    )
  })
  return h(
    'section',
    { id: 'start-here', 'data-place': true },
    h('h2', {}, 'Start here'),
    h('p', { class: 'lead' }, 'Three commands: an account, a job, its result.'),
    h('ol', { class: 'steps' }, items),
  )
}

/**
 * @param {string} command
 * @param {{ answer: string, variable: string, field: string }} keep
 */
const keeping = (command, { answer, variable, field }) =>
  [
    `${answer}=$(${command})`,
    `${variable}=$(expr "$${answer}" : '.*"${field}":"\\([^"]*\\)"')`,
    `echo "$${answer}"`,
  ].join('\n')

import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/** Preloaded by `--import`: on SIGUSR2 the process says, as a line of its log, which modules it has loaded. */
const urls: string[] = []
if (isMainThread) {
  registerHooks({
    load: (url, context, nextLoad) => {
      urls.push(url)
      return nextLoad(url, context)
    },
  })
  process.on('SIGUSR2', () => console.log(JSON.stringify({ message: 'modules', urls })))
}

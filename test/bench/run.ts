import { parseArgs } from 'node:util'
import { runCommand, UsageError } from '../../worker-runtime/command.ts'
import { benchPickup } from './pickup.ts'
import type { BenchReport } from './report.ts'

const BENCHES: Record<string, (say: (line: string) => void) => Promise<BenchReport>> = { pickup: benchPickup }

const HELP = `Usage: npm run bench [-- NAME…] [-- --json]

  pickup   submit → start on an idle local system, 300 submissions through the HTTP API

  --json   print one object, {"<name>": {…}}, and nothing else
  --help   print this

Without a name all of them run. Run them on an otherwise idle machine.`

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const names = positionals.length > 0 ? positionals : Object.keys(BENCHES)
  const say = (line: string): void => {
    if (!values.json) console.error(line)
  }
  const results: Record<string, object> = {}
  for (const name of names) {
    const bench = BENCHES[name]
    if (!bench)
      throw new UsageError(`There is no benchmark "${name}". There are: ${Object.keys(BENCHES).join(', ')}.`)
    const report = await bench(say)
    results[name] = report.data
    if (!values.json) console.table(report.rows)
  }
  if (values.json) console.log(JSON.stringify(results))
  return 0
}

runCommand('The benchmark failed', main)

/** Imports a bundled edge-worker.ts and prints the CPU time of a prediction, in a process that does nothing else. */
const [bundle = '', count = '1'] = process.argv.slice(2)

const { predict } = (await import(bundle)) as { predict(count: number): number }
const rounds = Array.from({ length: 6 }, () => {
  const before = process.cpuUsage()
  predict(Number(count))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / Number(count)
})
// The first round is the compiler's.
console.log(JSON.stringify(rounds.slice(1)))

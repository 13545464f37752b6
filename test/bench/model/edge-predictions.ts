/**
 * Imports a bundled edge-worker.ts and prints the CPU time of a prediction, alone and among a thousand, in a process that
 * does nothing else.
 */
const [bundle = '', count = '1'] = process.argv.slice(2)

const { predict } = (await import(bundle)) as { predict(count: number, rows: number): number }

const time = (total: number, rows: number): number[] => {
  const rounds = Array.from({ length: 6 }, () => {
    const before = process.cpuUsage()
    predict(total, rows)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / total
  })
  // The first round is the compiler's.
  return rounds.slice(1)
}

console.log(JSON.stringify({ alone: time(Number(count), 1), together: time(Number(count), 1_000) }))

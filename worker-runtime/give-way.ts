import { setPriority } from 'node:os'

/** On Linux priorities are those of threads. Elsewhere this would slow down the whole worker. */
export const giveWay = (niceness: number): void => {
  if (process.platform === 'linux') setPriority(niceness)
}

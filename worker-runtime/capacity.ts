export type Resources = { cpu_units: number; memory_mb: number }

export type Capacity = {
  readonly slots: number
  readonly cpuUnits: number
  readonly memoryMb: number
  free(): { slots: number; cpuUnits: number; memoryMb: number }
  fits(job: Resources): boolean
  take(job: Resources): void
  release(job: Resources): void
}

/** What a worker can run at the same time, and what of it is in use. */
export const createCapacity = (total: { slots: number; cpuUnits: number; memoryMb: number }): Capacity => {
  let slots = total.slots
  let cpuUnits = total.cpuUnits
  let memoryMb = total.memoryMb

  return {
    ...total,
    free: () => ({ slots, cpuUnits, memoryMb }),
    fits: (job) => slots > 0 && job.cpu_units <= cpuUnits && job.memory_mb <= memoryMb,
    take: (job) => {
      slots--
      cpuUnits -= job.cpu_units
      memoryMb -= job.memory_mb
    },
    release: (job) => {
      slots++
      memoryMb += job.memory_mb
      // Sums of fractions drift; with nothing running there is nothing to sum.
      cpuUnits = slots === total.slots ? total.cpuUnits : cpuUnits + job.cpu_units
    },
  }
}

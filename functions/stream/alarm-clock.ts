import { LONGEST_TIMER_MS } from './pace.ts'

/** Wakes the object: by a timer while it is soon, by an alarm while it is not, so that it can hibernate until then. */
export type AlarmClock = {
  /** At the latest after this time. A call that comes earlier stands. */
  wakeIn(ms: number): void
  /** It is awake: what was set is over. */
  rang(): void
}

type AlarmStorage = Pick<DurableObjectStorage, 'setAlarm'>

/** Timers are lost with the memory of the object. An alarm is behind each of them. */
const SAFETY_MS = 5_000

export const createAlarmClock = (storage: AlarmStorage, wake: () => void): AlarmClock => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let timerAt = Number.POSITIVE_INFINITY
  let alarmAt = Number.NEGATIVE_INFINITY

  const setAlarm = (at: number): void => {
    alarmAt = at
    // Nothing that is sent need wait until it is on disk.
    void storage.setAlarm(at, { allowUnconfirmed: true })
  }

  return {
    wakeIn: (ms) => {
      const now = Date.now()
      const at = now + ms
      if (ms <= LONGEST_TIMER_MS) {
        if (alarmAt <= now) setAlarm(now + SAFETY_MS)
        if (timerAt <= at) return
        clearTimeout(timer)
        timerAt = at
        timer = setTimeout(wake, ms)
      } else if (alarmAt <= now || at < alarmAt) setAlarm(at)
    },
    rang: () => {
      clearTimeout(timer)
      timerAt = Number.POSITIVE_INFINITY
      if (alarmAt <= Date.now()) alarmAt = Number.NEGATIVE_INFINITY
    },
  }
}

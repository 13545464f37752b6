/**
 * What a submission takes of the quotas is added by one update: if it fits, and else not at all. An update looks at the
 * newest version of the row that it has locked, so that two at the same time cannot both take the last of it. It does not
 * say why it did not fit: for that the caller asks again with `admit_submissions`, which takes several times as long.
 */

/** Said once: the expression would else stand in a dozen places, each of which is prepared for every submission. */
const CLOCK = `(
        select second, second / 3600 as hour
        from (select floor(extract(epoch from now()))::bigint as second offset 0) now
        offset 0
      ) clock`

/** Slots that the clock of another server may be ahead by: beyond that the ring is of no time that was. */
const AHEAD = 5

/** While the slot is the newest, nothing is moved: most submissions are in the second of the one before. */
const ring = (
  names: { at: string; newest: string; used: string; slots: string },
  now: string,
  amount: string,
) => {
  const { at, newest, used, slots } = names
  const isCurrent = `s.${at} between ${now} and ${now} + ${AHEAD}`
  const place = `s.${slots}, s.${at}, s.${newest}, ${now}`
  const usedBefore = `case when ${isCurrent} then s.${used} else smartqueue.ring_used(${place}) end`
  return {
    usedBefore,
    set: `
        ${slots} = case when ${isCurrent} then s.${slots} else smartqueue.ring_moved(${place}) end,
        ${used} = ${usedBefore} + ${amount},
        ${newest} = case when ${isCurrent} then s.${newest} else 0 end + ${amount},
        ${at} = case when ${isCurrent} then s.${at} else ${now} end`,
  }
}

const MINUTE = { at: 'minute_at', newest: 'second_jobs', used: 'minute_used', slots: 'minute_slots' }
const DAY = { at: 'day_at', newest: 'hour_bytes', used: 'day_used', slots: 'day_slots' }

/** The three are parameters or constants; `when` says what else must hold. */
export const charge = ({
  org,
  jobs,
  bytes,
  when,
}: Record<'org' | 'jobs' | 'bytes' | 'when', string>): string => {
  const minute = ring(MINUTE, 'clock.second', jobs)
  const day = ring(DAY, 'clock.hour', bytes)
  return `
    charge as (
      update smartqueue.quota_states s
      set${minute.set},${day.set},
        queued_bound = s.queued_bound + ${jobs}
      from smartqueue.quotas_of(${org}) q, ${CLOCK}
      where s.org_id = ${org}
        and ${when}
        and (q.submissions_per_minute is null or ${minute.usedBefore} + ${jobs} <= q.submissions_per_minute)
        and (q.payload_bytes_per_day is null or ${day.usedBefore} + ${bytes} <= q.payload_bytes_per_day)
        and (q.queued_jobs is null or s.queued_bound + ${jobs} <= q.queued_jobs)
      returning s.org_id
    ),`
}

/** The same for bytes that are kept beside jobs. */
export const chargeBytes = ({ org, bytes, when }: Record<'org' | 'bytes' | 'when', string>): string => {
  const day = ring(DAY, 'clock.hour', bytes)
  return `
    charge as (
      update smartqueue.quota_states s
      set${day.set}
      from smartqueue.quotas_of(${org}) q, ${CLOCK}
      where s.org_id = ${org}
        and ${when}
        and (q.payload_bytes_per_day is null or ${day.usedBefore} + ${bytes} <= q.payload_bytes_per_day)
      returning s.org_id
    ),`
}

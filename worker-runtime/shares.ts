import { ALL_FLOWS, type Gap, orgNumberOf } from '../db/rules/flows.ts'

/**
 * How this worker divides its time: start-time fair queueing between organisations, and then between the flows of each
 * (one per fairness key).
 *
 * An organisation's virtual time is the runtime of the jobs that it has been given, divided by its weight. The
 * organisation with the lowest time goes next, and the clock is the time of the one that was served last. An
 * organisation that starts waiting is moved forward to the clock if it is behind, so idle time earns no credit. If it is
 * past the clock, it keeps its debt.
 */
export type Shares = {
  /** The flow has jobs that are ready. */
  waits(flow: number): void
  isEmpty(flow: number): void
  /** The flow has been given jobs that are predicted to take this long altogether. */
  charge(flow: number, given: { jobs: number; ms: number; weight: number }): Charge
  /** One of these jobs has ended and took this much longer than predicted, or less if negative. */
  correct(charge: Charge, byMs: number): void
  /** Running jobs, and how far each exceeds its prediction so far. Replaces the values of the previous call. */
  overdue(jobs: Iterable<{ charge: Charge; byMs: number }>): void
  /** The flows to name in a claim of `jobs` jobs, lowest virtual time first. `all`: no other flow waits. */
  next(jobs: number): { turns: Turn[]; all: boolean }
  /**
   * The gaps in which to look for other flows, around `places` organisations, in rotation. `idle`: known flows without
   * jobs that end a gap. `all`: these are all the gaps.
   */
  look(places: number): { gaps: Gap[]; idle: Turn[]; all: boolean }
  /** The look found as many flows as there is room for. The next one begins after this flow. */
  lookAfter(flow: number): void
  /** Nobody waits, so nobody owes anything to anybody. */
  forget(): void
}

/** The times are relative to the clocks, so an unknown flow has time 0. */
export type Turn = { flow: number; orgTimeMs: number; timeMs: number; waits: boolean }

/** Jobs of one flow that were claimed together. */
export type Charge = { readonly org: Org; readonly flow: Flow }

/** An organisation among all, or a flow within its organisation. */
type Member = {
  timeMs: number
  overdueMs: number
  /** Given jobs that have not ended. Their corrections are still to come. */
  running: number
}
type Flow = Member & { id: number; waits: boolean }
type Org = Member & { number: number; weight: number; clockMs: number; flows: Map<number, Flow> }

/** The most credit that refunds for jobs that ran shorter than predicted can give: the default drain goal. */
const MOST_CREDIT_MS = 20_000
/** A claim names at most this many organisations, and this many flows of one of them. */
const MOST_ORGS = 64
const MOST_FLOWS = 64
/** Beyond this many flows of one organisation, half of them are forgotten. */
const MOST_REMEMBERED = 1_000
/** With at most this many flows, a claim looks into all gaps inside the organisation; with more, into a random one. */
const MOST_INNER_GAPS = 8

export const createShares = (random: () => number = Math.random): Shares => {
  const orgs = new Map<number, Org>()
  let clockMs = 0
  let lookedUpTo = ALL_FLOWS.after

  const orgOf = (flow: number): Org => {
    const number = orgNumberOf(flow)
    const known = orgs.get(number)
    if (known) return known
    const org = { number, timeMs: clockMs, overdueMs: 0, running: 0, weight: 1, clockMs: 0, flows: new Map() }
    orgs.set(number, org)
    return org
  }

  const flowOf = (org: Org, id: number): Flow => {
    const known = org.flows.get(id)
    if (known) return known
    const flow = { id, timeMs: org.clockMs, overdueMs: 0, running: 0, waits: false }
    org.flows.set(id, flow)
    return flow
  }

  const waits = (id: number): void => {
    const org = orgOf(id)
    if (!isWaiting(org)) startAt(org, clockMs)
    const flow = flowOf(org, id)
    if (!flow.waits) startAt(flow, org.clockMs)
    flow.waits = true
  }

  const isEmpty = (id: number): void => {
    const flow = orgs.get(orgNumberOf(id))?.flows.get(id)
    if (flow) flow.waits = false
  }

  const charge: Shares['charge'] = (id, { jobs, ms, weight }) => {
    waits(id)
    const org = orgOf(id)
    const flow = flowOf(org, id)
    org.weight = weight
    clockMs = Math.max(clockMs, currentTime(org))
    org.clockMs = Math.max(org.clockMs, currentTime(flow))
    org.timeMs += ms / weight
    flow.timeMs += ms
    org.running += jobs
    flow.running += jobs
    return { org, flow }
  }

  const correct: Shares['correct'] = ({ org, flow }, byMs) => {
    settle(org, byMs / org.weight, clockMs)
    settle(flow, byMs, org.clockMs)
  }

  const overdue: Shares['overdue'] = (jobs) => {
    for (const org of orgs.values()) {
      org.overdueMs = 0
      for (const flow of org.flows.values()) flow.overdueMs = 0
    }
    for (const { charge, byMs } of jobs) {
      charge.org.overdueMs += byMs / charge.org.weight
      charge.flow.overdueMs += byMs
    }
  }

  /**
   * Forgets an organisation that has no jobs and owes nothing, together with the debts between its flows. Waiting for
   * those to be paid would keep it for ever, because the flow that was served last always has one.
   */
  const tidy = (org: Org): void => {
    if (org.running === 0 && org.timeMs <= clockMs) orgs.delete(org.number)
  }

  const turnOf = (org: Org, flow: Flow): Turn => ({
    flow: flow.id,
    orgTimeMs: currentTime(org) - clockMs,
    timeMs: currentTime(flow) - org.clockMs,
    waits: flow.waits,
  })

  const next: Shares['next'] = (jobs) => {
    const waiting: Org[] = []
    for (const org of orgs.values()) {
      if (isWaiting(org)) waiting.push(org)
      else tidy(org)
      if (org.flows.size > MOST_REMEMBERED) forgetFlows(org)
    }
    const chosen = lowest(waiting, Math.min(jobs + 1, MOST_ORGS), currentTime)
    const most = Math.min(Math.ceil((2 * jobs) / chosen.length) + 1, MOST_FLOWS)
    let all = chosen.length === waiting.length
    const turns = chosen.flatMap((org) => {
      const flows = [...org.flows.values()].filter((flow) => flow.waits)
      all &&= flows.length <= most
      return lowest(flows, most, currentTime).map((flow) => turnOf(org, flow))
    })
    return { turns, all }
  }

  const look: Shares['look'] = (places) => {
    const gaps: Gap[] = []
    const idle: Turn[] = []
    let all = lookedUpTo === ALL_FLOWS.after

    const lookUpTo = (org: Org, flow: Flow, after: number): void => {
      // A flow that does not wait may have jobs again, so the gap includes it.
      gaps.push({ after, before: flow.waits ? flow.id : flow.id + 1 })
      if (!flow.waits) idle.push(turnOf(org, flow))
    }
    const following = [...orgs.values()].filter(({ number }) => number > orgNumberOf(lookedUpTo))
    for (const org of lowest(following, places, ({ number }) => number)) {
      const flows = [...org.flows.values()].sort((a, b) => a.id - b.id)
      const [first] = flows
      if (!first) continue
      lookUpTo(org, first, lookedUpTo)
      const pick = flows.length <= MOST_INNER_GAPS ? undefined : 1 + Math.floor(random() * (flows.length - 1))
      flows.forEach((flow, n) => {
        if (n > 0 && (pick === undefined || n === pick)) lookUpTo(org, flow, flows[n - 1]?.id ?? 0)
      })
      all &&= pick === undefined
      lookedUpTo = flows.at(-1)?.id ?? lookedUpTo
    }
    if (following.length > places) return { gaps, idle, all: false }
    gaps.push({ after: lookedUpTo, before: ALL_FLOWS.before })
    lookedUpTo = ALL_FLOWS.after
    return { gaps, idle, all }
  }

  return {
    waits,
    isEmpty,
    charge,
    correct,
    overdue,
    next,
    look,
    lookAfter: (flow) => {
      lookedUpTo = flow
    },
    forget: () => orgs.clear(),
  }
}

const isWaiting = (org: Org): boolean => {
  for (const flow of org.flows.values()) if (flow.waits) return true
  return false
}

/** Forgets the oldest flows without jobs. An organisation may use a new fairness key for each job. */
const forgetFlows = ({ flows }: Org): void => {
  for (const flow of flows.values()) {
    if (flows.size <= MOST_REMEMBERED / 2) return
    if (!flow.waits && flow.running === 0) flows.delete(flow.id)
  }
}

const currentTime = ({ timeMs, overdueMs }: Member): number => timeMs + overdueMs

/** It starts waiting. Time that its overdue jobs have already used still counts. */
const startAt = (member: Member, clockMs: number): void => {
  member.timeMs = Math.max(member.timeMs, clockMs - member.overdueMs)
}

/**
 * A job has ended, and its overrun moves from `overdueMs` to `timeMs`. Refunds are capped, but the cap never turns one
 * into a charge: while jobs are overdue, `timeMs` alone can be far behind the clock.
 */
const settle = (member: Member, byMs: number, clockMs: number): void => {
  const lowestMs = Math.min(member.timeMs, clockMs - MOST_CREDIT_MS)
  member.timeMs = Math.max(member.timeMs + byMs, lowestMs)
  member.overdueMs = Math.max(0, member.overdueMs - Math.max(0, byMs))
  member.running--
}

/** The `count` lowest, in order. Reads a long list once: there may be thousands, and few are wanted. */
const lowest = <Item>(items: readonly Item[], count: number, by: (item: Item) => number): Item[] => {
  const found: { item: Item; value: number }[] = []
  for (const item of items) {
    const value = by(item)
    const last = found[count - 1]
    if (last && last.value <= value) continue
    let place = found.length
    while (place > 0 && (found[place - 1]?.value ?? 0) > value) place--
    found.splice(place, 0, { item, value })
    if (found.length > count) found.pop()
  }
  return found.map(({ item }) => item)
}

import type { Query } from '../query.ts'
import type { Account } from './accounts.ts'
import { audit } from './audit.ts'
import { HIT, type RateLimit, type RateVerdict } from './rate-limits.ts'

/** Attempts of one name that are free; each one more without a success blocks it for twice as long as the one before. */
const FREE_ATTEMPTS = 10
const LONGEST_BLOCK_SECONDS = 900
/** After this time without an attempt the name starts over. */
const FORGET_SECONDS = 3600

export type SignInAttempt = RateVerdict & {
  /** The name has had too many attempts: seconds until the next. Null if it may be tried now. */
  blocked_for: number | null
  user_id: string | null
  password_hash: string | null
}

/**
 * Counts an attempt for the network and for the name, before the password is looked at, and finds the user. Names that
 * nobody has are counted and blocked just the same: nothing tells them apart. Both counts are exact under concurrency.
 */
export const beginSignIn = (
  limit: RateLimit,
  attempt: { username: string; ip: string | null },
): Query<SignInAttempt> => ({
  name: 'begin-sign-in',
  text: `
    with network as (${HIT}
    ),
    named as (
      insert into smartqueue.sign_in_attempts as a (name_hash, attempts, blocked_until, admitted, last_attempt)
      select sha256(convert_to(lower($5::text), 'UTF8')), 1, null, true, clock_timestamp()
      from network
      where admitted
      on conflict (name_hash) do update
      set (attempts, blocked_until, admitted, last_attempt) = (
        select
          case when blocked then a.attempts else tried end,
          case
            when blocked then a.blocked_until
            when tried > ${FREE_ATTEMPTS} then
              clock_timestamp()
                + least(${LONGEST_BLOCK_SECONDS}, 2 ^ least(tried - ${FREE_ATTEMPTS}, 20)) * interval '1 second'
          end,
          not blocked,
          clock_timestamp()
        from (
          select
            coalesce(a.blocked_until > clock_timestamp(), false) as blocked,
            case
              when a.last_attempt < clock_timestamp() - ${FORGET_SECONDS} * interval '1 second' then 1
              else a.attempts + 1
            end as tried
        ) so_far
      )
      returning
        a.admitted,
        greatest(1, ceil(extract(epoch from a.blocked_until - clock_timestamp())))::integer as blocked_for
    )
    select
      n.admitted, n.remaining, n.resets_in,
      case when not named.admitted then named.blocked_for end as blocked_for,
      u.id as user_id, u.password_hash
    from network n
    left join named on true
    left join smartqueue.users u on u.username_key = lower($5::text)`,
  values: [limit.action, attempt.ip, limit.limit, limit.windowSeconds, attempt.username],
})

/**
 * Signs a user who has proved who they are in to their oldest organisation. Someone who has left all of them, or was removed,
 * gets a new personal one, whatever the limit: nobody is locked out of their account. Returns no row if the user no longer exists.
 */
export const startSession = (session: {
  userId: string
  /** The id of that new organisation. */
  orgId: string
  familyId: string
  tokenHash: string
  days: number
  userAgent: string | null
}): Query<Account> => ({
  name: 'start-session',
  text: `
    with home as materialized (
      select m.org_id, m.role
      from smartqueue.memberships m
      where m.user_id = $1::uuid
      order by m.created_at, m.org_id
      limit 1
    ),
    new_org as (
      insert into smartqueue.orgs (id, name, created_by)
      select $5::uuid, username, id
      from smartqueue.users
      where id = $1::uuid
        and not exists (select from home)
      returning id
    ),
    new_home as (
      insert into smartqueue.memberships (org_id, user_id, role)
      select id, $1::uuid, 'org_admin'
      from new_org
      returning org_id, role
    ),
    account as materialized (
      select u.id as user_id, u.username, m.org_id, case when u.is_admin then 'admin' else m.role end as role
      from smartqueue.users u
      cross join (select * from home union all select * from new_home) m
      where u.id = $1::uuid
    ),
    forgotten as (
      delete from smartqueue.sign_in_attempts
      where name_hash = (select sha256(convert_to(lower(username), 'UTF8')) from account)
    ),
    family as (
      insert into smartqueue.refresh_families (id, user_id, org_id, expires_at, user_agent)
      select $2::uuid, user_id, org_id, now() + $4::int * interval '1 day', $6::text
      from account
      returning id
    ),
    token as (
      insert into smartqueue.refresh_tokens (token_hash, family_id, expires_at)
      select decode($3::text, 'hex'), id, now() + $4::int * interval '1 day'
      from family
    ),
    audit as (${audit('account.signed_in', `jsonb_build_object('user_id', user_id)`, 'account')}
    )
    select user_id, username, org_id, role
    from account`,
  values: [
    session.userId,
    session.familyId,
    session.tokenHash,
    session.days,
    session.orgId,
    session.userAgent,
  ],
})

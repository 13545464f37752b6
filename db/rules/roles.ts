/** `admin` sees every organisation; the other two hold inside one. Each may what those before it may. */
export const ROLES = ['user', 'org_admin', 'admin'] as const

export type Role = (typeof ROLES)[number]

/** What a member of an organisation can be. */
export const MEMBER_ROLES = ['org_admin', 'user'] as const

export type MemberRole = (typeof MEMBER_ROLES)[number]

export const isAtLeast = (role: Role, least: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(least)

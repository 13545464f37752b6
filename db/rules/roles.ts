/** `admin` sees every organisation; the other two hold inside one. */
export const ROLES = ['admin', 'org_admin', 'user'] as const

export type Role = (typeof ROLES)[number]

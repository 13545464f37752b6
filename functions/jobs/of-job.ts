import type { MiddlewareHandler } from 'hono'
import { findJobOrg } from '../../db/queries/jobs.ts'
import type { Permission } from '../auth/permissions.ts'
import { PERMISSIONS } from '../auth/permissions.ts'
import { access, enterAs, seesAllOrgs } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { uuid } from '../http/openapi.ts'

/** A route with the id of a job. An admin reaches the jobs of all organisations: theirs becomes that of the job. */
export const accessToJob = (permission: Permission) => access(permission, goToOrgOfJob(permission))

const goToOrgOfJob =
  (permission: Permission): MiddlewareHandler<AppEnv> =>
  async (c, next) => {
    const id = uuid.safeParse(c.req.param('id'))
    if (id.success && seesAllOrgs(c)) {
      const [found] = await enterAs(c, { leastRole: 'admin', allOrgs: true })(findJobOrg(id.data))
      if (found) {
        c.set('principal', { ...c.get('principal'), org_id: found.org_id })
        c.set('run', enterAs(c, { leastRole: PERMISSIONS[permission].role }))
      }
    }
    await next()
  }

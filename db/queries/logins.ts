import type { Query } from '../query.ts'

export type Login = { name: string; password: string; group: string }

/**
 * Roles take no parameters, so that the server itself puts the statement together, with everything quoted. It makes the
 * login, or gives an existing one the password and the group.
 */
export const describeLogin = ({ name, password, group }: Login): Query<{ statement: string }> => ({
  name: 'describe-login',
  text: `
    select
      format(
        -- A new role can do nothing special unless that is said; to say of an existing one that it cannot takes a superuser.
        case when exists (select from pg_roles where rolname = $1::text) then 'alter role %1$I' else 'create role %1$I' end
          || ' login password %2$L; grant %3$I to %1$I',
        $1::text, $2::text, $3::text
      ) as statement`,
  values: [name, password, group],
})

/** Takes a login away. What it is connected with goes on until it disconnects. */
export const describeDrop = (name: string): Query<{ statement: string }> => ({
  name: 'describe-drop',
  text: `
    select format('drop role %I', $1::text) as statement`,
  values: [name],
})

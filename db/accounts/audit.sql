-- Entries of the audit log. An entry is written in the same transaction as the action it records, so that neither
-- happens without the other.

create or replace function audit(p_org uuid, p_action text, p_target jsonb, p_actor uuid default scope_user())
returns void
language sql
-- Runs with the rights of its caller: a policy prevents the API from writing in the name of another user.
begin atomic
  insert into audit_log (org_id, actor_id, action, target) values (p_org, p_actor, p_action, p_target);
end;

create or replace function audit_everywhere(p_user uuid, p_action text) returns void
language sql
-- Records what happened to an account in all organisations of the user. The actor is unknown.
begin atomic
  insert into audit_log (org_id, actor_id, action, target)
  select m.org_id, null, p_action, jsonb_build_object('user_id', p_user)
  from active_memberships m
  where m.user_id = p_user;
end;

grant execute on function audit to smartqueue_functions;

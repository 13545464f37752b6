-- An attempt that was cancelled, or that a stopping worker gave back, is told too once its job goes on.
alter table attempts drop constraint attempts_outcome;
alter table attempts
  add constraint attempts_outcome check (outcome in ('failed', 'lost', 'snoozed', 'cancelled', 'given_back'));

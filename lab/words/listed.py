"""Where there are sentences of ours, and single words that nothing else shows to be ours."""

from typing import Final

# Files whose sentences pages show through `|said`. Whoever wraps a further file adds it here.
SPOKEN: Final = (
    # the operator's pages
    "console/accepting.py", "console/adoptions.py", "console/as_of.py", "console/between.py", "console/board_facts.py",
    "console/board_search.py", "console/board_words.py", "console/by_hand.py", "console/chain_status.py",
    "console/columns.py", "console/confirming.py", "console/evidence.py", "console/first_steps.py",
    "console/four_lamps.py", "console/frame.py", "console/history.py", "console/inventory_filter.py",
    "console/inventory_rows.py", "console/lamps.py", "console/members.py", "console/overview.py",
    "console/people_rows.py", "console/plan_changes.py", "console/plans.py", "console/proof.py",
    "console/review.py", "console/states.py", "console/witnesses.py",
    "console/templatetags/board.py", "console/templatetags/lamps.py",
    "console/views/as_of.py", "console/views/audit.py", "console/views/audit_history.py", "console/views/board.py",
    "console/views/conflicts.py", "console/views/drift.py", "console/views/enrolment.py",
    "console/views/first_run.py", "console/views/labels.py", "console/views/manager.py",
    "console/views/partition.py", "console/views/partitions.py", "console/views/people.py",
    "console/views/qualification.py", "console/views/replacement.py", "console/views/servers.py",
    "console/views/tenants.py",
    # people
    "people/sessions.py", "people/language_views.py",
    "people/accounts.py", "people/adapter.py", "people/fresh.py", "people/logins.py", "people/mfa_views.py",
    "people/models.py", "people/operations.py", "people/second_factor.py", "people/suspension.py",
    "people/tenant_policy.py", "people/token_views.py", "people/scopes.py", "people/actor.py",
    "inventory/evidence.py", "inventory/importing.py", "inventory/labels.py", "inventory/models.py",
    "inventory/reconcile.py",
    "audit/anchors.py", "audit/chain.py", "audit/exporting.py", "audit/keyring.py", "audit/models.py",
    "audit/outage.py", "audit/record.py", "audit/restoration.py", "audit/review.py", "audit/signing.py",
    "audit/spool.py", "audit/standing.py", "audit/values.py", "audit/verifier.py", "audit/watch.py",
    "portal/models.py", "portal/request_models.py", "portal/turns.py", "portal/asking.py",
    # the rooms: what the wishes, the plans and the rollouts say
    "partitions/adoption.py", "partitions/apps.py", "partitions/as_of.py", "partitions/back_to.py",
    "partitions/board.py", "partitions/card_moves.py", "partitions/cleaning.py", "partitions/closing.py",
    "partitions/creation.py", "partitions/default_rule.py", "partitions/doer.py", "partitions/drift_adoption.py",
    "partitions/errors.py", "partitions/going_out.py", "partitions/handover.py", "partitions/link_loss.py",
    "partitions/many_moves.py", "partitions/mirror.py", "partitions/offboarding.py", "partitions/ownership.py",
    "partitions/pkeys.py", "partitions/plans.py", "partitions/quotas.py", "partitions/refusals.py",
    "partitions/renaming.py", "partitions/replacement.py", "partitions/retirement.py", "partitions/selection.py",
    "partitions/staging.py", "partitions/staleness.py", "partitions/standing.py", "partitions/titles.py",
    "partitions/undoing.py", "partitions/wishes.py",
    "deploy/as_of.py", "deploy/confirmation.py", "deploy/deadlines.py", "deploy/decisions.py",
    "deploy/drift_causes.py", "deploy/drift_findings.py", "deploy/drift_tables.py", "deploy/drifting.py",
    "deploy/errors.py", "deploy/evidence.py", "deploy/files.py", "deploy/going_without.py", "deploy/host_check.py",
    "deploy/leave.py", "deploy/look.py", "deploy/manager_key.py", "deploy/models.py", "deploy/observe.py",
    "deploy/operations.py", "deploy/proof.py", "deploy/putting_back.py", "deploy/qualification.py",
    "deploy/qualifying.py", "deploy/readiness.py", "deploy/reproof.py", "deploy/restore.py", "deploy/retirement.py",
    "deploy/rollout.py", "deploy/scanning.py", "deploy/second_reading.py", "deploy/story.py", "deploy/tables.py",
    "deploy/terms.py", "deploy/watching.py",
    "subnet/census.py", "subnet/closing.py", "subnet/effects.py", "subnet/file_drift.py", "subnet/index.py",
    "subnet/leaf_copies.py", "subnet/plan.py", "subnet/policy.py", "subnet/policy_language.py", "subnet/posture.py",
    "subnet/qualification.py", "subnet/readback.py",
    "webhooks/delivering.py", "webhooks/following.py", "webhooks/models.py", "webhooks/operations.py",
    "webhooks/views.py",
    # what the manager hosts, the subnet's files and its ports say
    "remote/errors.py", "remote/fingerprint.py", "remote/local.py", "remote/manager_host.py", "remote/path_record.py",
    "remote/posting.py", "remote/probe_host.py", "remote/shell.py", "remote/ssh.py", "remote/syslog.py",
    "remote/watch_verbs.py", "people/openid.py",
    "subnet/adoption.py", "subnet/adoption_proof.py", "subnet/errors.py", "subnet/guid.py", "subnet/listing.py",
    "subnet/listing_readers.py", "subnet/pkey.py", "subnet/rebase.py", "subnet/strict_reader.py", "subnet/table.py",
    "subnet/witness.py", "subnet/opensm_reading/causes.py", "subnet/opensm_reading/log.py",
    "subnet/opensm_reading/notes.py", "subnet/opensm_reading/on_fabric.py", "subnet/opensm_reading/parser.py",
    "subnet/opensm_reading/whole.py",
    # probes
    "probes/accept.py", "probes/advice.py", "probes/attempt.py", "probes/attempts.py", "probes/crossing.py",
    "probes/evidence.py", "probes/forgeable.py", "probes/forms.py", "probes/heat.py", "probes/histogram.py",
    "probes/isolation.py", "probes/judgement.py", "probes/kv_models.py", "probes/lamps.py", "probes/members.py",
    "probes/on_host.py", "probes/orders.py", "probes/path_checks.py", "probes/planning.py",
    "probes/profiles.py", "probes/running.py", "probes/session.py", "probes/settings_of_scope.py",
    "probes/verdict.py", "probes/windows.py",
    "probes/operations/hosts.py", "probes/operations/incidents.py", "probes/operations/isolation.py",
    "probes/operations/now.py", "probes/operations/scopes.py", "probes/templatetags/probes.py",
    "probes/views/incidents.py", "probes/views/isolation.py", "probes/views/scopes.py", "probes/views/settings.py",
)  # fmt: skip
# Single words that Python hands to pages, which no f-string and no lamp shows to be ours.
WORDS: Final = (
    # the operator's pages
    "Unassigned", "mixed", "absent", "unreadable", "discrepancies", "tables", "joined", "left", "Name", "Owner",
    "created", "retired", "renamed", "alone", "joining", "leaving", "Provider", "Look", "Adopt", "Place",
    "Nothing.", "witness", "Board", "Rollouts", "Servers", "Managers", "Drift", "Partitions", "Probes",
    "Audit", "People", "every other port keeps what it has", "takes", "Is sshd running there?",
    # what the system says of a connection
    "Connection refused", "No route to host", "Network is unreachable", "Connection timed out", "timed out",
    "Connection reset by peer", "Name or service not known", "Temporary failure in name resolution",
    "Permission denied", "No space left on device", "Read-only file system",
    # probes
    "before", "after", "succeeded", "sender", "target", "consents", "fabric", "server", "Profiles", "Interval", "Load",
    "Milliseconds.", "{hours} h",
    "{minutes} min old", "{hours} h old", "{days} days old", "{percent} % of the line", "{percent} % of the best pair",
    "worst of {percent} % of the line", "worst of {percent} % of the best pair",
)  # fmt: skip

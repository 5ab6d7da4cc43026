"""Which action each form of the operators' and administrators' pages leaves in the trail, as data.

`RECORDED` are those that change something on the site of tests/people/everything.py; `AFTER` says what is posted
before. `ELSEWHERE` need something that is not there: the test that makes it and posts. The watch of
tests/trail_watch.py fails that test if what is written has no event.
"""

from typing import Final

from inventory import labels
from inventory.models import Server
from inventory.operations import preview_labels
from partitions.models import Partition

ROOMS: Final = ("console:", "probes:", "webhooks:", "portal:operator_")
LABELS: Final = "hostname,rack\nsrv-001,front\n"

RECORDED: Final = {
    "console:people": "people:person:create",
    "console:person_role": "people:person:role",
    "console:person_give_role": "people:role:give",
    "console:person_take_role": "people:role:take",
    "console:person_lock": "people:person:lock",
    "console:person_unlock": "people:person:unlock",
    "console:person_second_factor": "people:second-factor:remove",
    "console:person_sessions": "people:session:end",
    "console:person_password": "people:person:password",
    "console:tenants": "people:tenant:create",
    "console:tenant_policy": "people:tenant:policy",
    "console:tenant_suspend": "people:tenant:suspend",
    "console:tenant_resume": "people:tenant:resume",
    "probes:consent": "probes:tenant:consent",
    "probes:begin": "probes:scope:settings",
    "probes:settings": "probes:scope:settings",
    "probes:now": "probes:scope:run-now",
    "probes:isolation_now": "probes:isolation:check-now",
    "probes:acknowledge": "probes:incident:acknowledge",
    "console:first_run_create": "inventory:subnet:create",
    "console:first_run_check": "deploy:host-check:request",
    "console:managers_look": "deploy:observation:request",
    "console:manager_check": "deploy:host-check:request",
    "console:manager_retire": "inventory:manager-host:retire",
    "console:qualification_run": "deploy:qualification:request",
    "console:qualification_mode": "inventory:subnet:mode",
    "console:enrolment": "inventory:enrolment-token:create",
    "console:token_revoke": "inventory:enrolment-token:revoke",
    "console:credential_rotate": "inventory:server:credential-ask",
    "console:credential_revoke": "inventory:server:credential-revoke",
    "console:conflict_decide": "inventory:port:conflict-decide",
    "console:labels": "inventory:server:label",
    "console:partitions": "partitions:partition:create",
    "console:partition_rename": "partitions:partition:rename",
    "console:board_move": "partitions:member:stage",
    "console:board_membership": "partitions:member:stage",
    "console:board_discard": "partitions:member:discard",
    "console:board_undo": "partitions:member:undo",
    "console:plan_look": "deploy:observation:request",
    "console:adoption_look": "deploy:observation:request",
    "console:drift_look": "deploy:observation:request",
    "console:drift_put_back": "deploy:rollout:start",
    "console:drift_restoring": "deploy:drift:restoring",
    "console:drift_adopt": "partitions:drift:adopt",
    "webhooks:endpoints": "webhooks:endpoint:create",
    "webhooks:test": "webhooks:endpoint:test",
    "webhooks:off": "webhooks:endpoint:switch-off",
    "webhooks:on": "webhooks:endpoint:switch-on",
    "webhooks:secret": "webhooks:endpoint:secret",
    "webhooks:remove": "webhooks:endpoint:remove",
    "portal:operator_offer": "portal:storage:offer",
    "portal:operator_decline": "portal:request:decline",
    "portal:operator_comment": "portal:request:comment",
}
AFTER: Final = {
    "console:person_unlock": "console:person_lock",
    "console:tenant_resume": "console:tenant_suspend",
    "console:board_discard": "console:board_move",
    "console:board_undo": "console:board_move",
    "webhooks:on": "webhooks:off",
}
ELSEWHERE: Final = {
    "console:tenant_empty": "console/test_leaving_tenants.py::test_an_administrator_goes_all_the_way",
    "console:tenant_finish": "console/test_leaving_tenants.py::test_an_administrator_goes_all_the_way",
    "console:plan": "console/test_partition_pages.py::test_a_big_plan_is_rolled_out_with_a_reason_only",
    "console:rollout_cancel": "console/test_rollout_pages.py::test_a_queued_rollout_can_be_cancelled",
    "console:rollout_check": "console/test_rollout_pages.py::test_an_unproven_one_is_looked_at_again",
    "console:rollout_release": "console/test_rollout_pages.py::test_a_stuck_one_is_let_go_of_with_a_reason_only",
    "console:rollout_confirm":
        "console/test_rollout_pages.py::test_what_waits_to_be_confirmed_counts_down_and_is_kept_by_a_button",
    "console:rollout_accept": "console/test_by_a_persons_word.py::test_by_a_click_it_stands_with_name_and_reason",
    "console:server_clean":
        "console/test_partition_pages.py::test_the_second_half_waits_on_the_plan_until_the_server_is_marked_clean",
    "console:port_confirm": "console/test_other_pages.py::test_an_unconfirmed_port_is_confirmed_by_a_person",
    "console:replacement": "console/test_inventory_pages.py::test_a_card_is_replaced_on_its_page",
    "console:replacement_undo": "console/test_inventory_pages.py::test_a_card_is_replaced_on_its_page",
    "console:qualification_sign":
        "console/test_manager_pages.py::test_the_checklist_is_signed_item_by_item_and_write_mode_follows",
    "console:adoption_adopt":
        "console/test_adoption_page.py::test_the_button_adopts_with_the_chosen_owners_and_then_places",
    "console:adoption_place":
        "console/test_adoption_page.py::test_the_button_adopts_with_the_chosen_owners_and_then_places",
    "console:adoption_default": "console/test_adoption_page.py::test_after_it_default_is_closed_in_steps",
    "console:partition_retire": "console/test_partition_pages.py::test_retire_stages_first_and_retires_when_empty",
    "console:as_of_stage": "console/test_as_of_pages.py::test_it_is_shown_first_and_then_staged",
    "portal:operator_reopen": "portal/test_deciding.py::test_what_was_discarded_is_opened_again",
    "portal:operator_approve":
        "portal/test_deciding.py::test_more_servers_are_chosen_from_the_pool_and_done_once_proven",
}  # fmt: skip


def forms(site) -> dict[str, dict[str, object]]:
    """What is sent beside what `everything` sends; every form gets a reason."""
    shown = preview_labels(subnet=Server.objects.first().subnet, file=labels.read(LABELS.encode()))
    training = Partition.objects.get(name="training")
    moves = {"server": Server.objects.get(hostname="srv-002").public_id, "source": training.public_id}
    wanted = ("interval_s", "budget", "mib_per_run", "ttft_budget_ms", "service_level", "busy_pct", "line_bad_pct",
              "peers_warn_pct", "peers_latency_factor", "history_warn_pct", "history_bad_pct")  # fmt: skip
    figures = dict(zip(wanted, (600, 3, 64, 500, 0, 20, 50, 80, 2, 20, 40), strict=True))
    return {
        "console:people": {"username": "nina", "name": "Nina", "role": "AUDITOR"},
        "console:person_role": {"role": "AUDITOR"},
        "console:tenants": {"name": "Newcomer", "slug": "newcomer"},
        "console:enrolment": {"name": "rack 2", "uses": "3", "hours": "2"},
        "console:first_run_create": {"name": "second", "prefix": "0xfe80000000000001"},
        "console:partitions": {"name": "newcomer"},
        "console:partition_rename": {"name": "renamed"},
        "console:board_move": moves | {"target": site.forms["console:board_move"]["target"]},
        "console:board_membership": {
            "server": moves["server"], "partition": training.public_id, "membership": "limited",
        },
        "console:drift_restoring": {"enabled": "yes"},
        "console:qualification_mode": {"mode": "OBSERVE"},
        "console:labels": {"text": LABELS, "digest": shown.digest},
        "probes:consent": {"consents": "0"},
        "probes:settings": {"is_enabled": "on", "profiles": "link", "mode": "loaded", **figures},
        "probes:acknowledge": {"note": "a cable"},
        "webhooks:endpoints": {"name": "second", "url": "https://hooks.example.com/y", "kinds": ["stuck"]},
        "portal:operator_decline": {"answer": "none left"},
        "portal:operator_comment": {"text": "soon"},
        "portal:operator_offer": {"words": "a share"},
    }  # fmt: skip

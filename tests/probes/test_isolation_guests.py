"""Isolation attempts between two real kernels. Soft-RoCE has one P_Key, so nothing is isolated there: that is the use.

With the guard of the link layer off the attempt really completes, and must be called a LEAK; with the target killed it
ends as a dropped one would, and must not be called ISOLATED.
"""

from contextlib import nullcontext

import pytest

from audit.values import SYSTEM
from inventory.models import Server, Subnet
from probes import attempts, operations
from probes.attempt import Check, End, check
from probes.models import Incident, IsolationCheck
from probes.settings_of_scope import ScopeSettings
from probes.terms import PortChoice
from probes.verdict import NOT_ON_ETHERNET
from tests.probes import guest_faults as faults
from tests.probes.site import HOST_KEY

pytestmark = pytest.mark.rdma


@pytest.fixture(autouse=True)
def _nothing_is_left(guests):
    yield
    for guest in guests.guests:
        faults.wait_until_nothing_runs(guest)


def both(hosts, *, sender=0, **changes):
    ends = [End(host, PortChoice(), None) for host in hosts]
    one, other = ends[sender], ends[1 - sender]
    # A guest's processor is emulated and may stand still for a second.
    return Check(one, other, [(one, other)], **{"ack_timeout": 18, "deadline_s": 200.0} | changes)


def test_the_guard_says_not_applicable_before_anything_is_written(hosts):
    found = check(both(hosts))
    assert (found.judged.verdict, found.judged.sentence) == ("INCONCLUSIVE", NOT_ON_ETHERNET)
    assert found.evidence["controls_before"][0]["sender"]["link_layer"] == "Ethernet"


@pytest.mark.parametrize("sender", [0, 1], ids=["there", "back"])
def test_with_the_guard_off_the_attempt_really_completes_and_is_a_leak(hosts, sender):
    found = check(both(hosts, sender=sender, is_ethernet_allowed=True))
    assert found.judged.verdict == "LEAK", found.judged.sentence
    attempt = found.evidence["attempt"]
    assert (attempt["outcome"], attempt["status"], attempt["canary_intact"]) == ("OK", 0, False)
    assert attempt["target_in_rts"] is True
    ends = attempt["ends"]
    assert ends["sender"]["node_guid"] != ends["target"]["node_guid"]
    assert [control["status"] for control in found.evidence["controls_before"]] == [0]
    assert [control["status"] for control in found.evidence["controls_after"]] == [0]


def test_with_the_target_killed_it_is_inconclusive(hosts, guests):
    def before(step):
        if step == "attempt":
            faults.kill_program(guests.guests[1])

    found = check(both(hosts, is_ethernet_allowed=True), before={"attempt": before})
    assert found.judged.verdict == "INCONCLUSIVE", found.judged.sentence
    assert "a dead target looks the same" in found.judged.sentence
    assert found.evidence["attempt"]["target_alive"] is False
    assert [control["status"] for control in found.evidence["controls_after"]] == [0]


@pytest.mark.parametrize("is_mended", [True, False], ids=["mended", "still cut"])
def test_a_write_that_vanishes_gives_status_12_in_its_time_and_is_isolated_only_if_the_control_succeeds_again(
    hosts, guests, is_mended
):
    """The sender is told another Ethernet address of the target: packets vanish on the way as between two P_Keys."""
    sender, target = guests.guests
    name = sender.admin(f"cat /sys/class/infiniband/{sender.device}/parent").strip()
    address = target.admin(f"ip -4 -o addr show dev $(cat /sys/class/infiniband/{target.device}/parent)").split()[3]
    address = address.partition("/")[0]

    def mend():
        sender.admin(f"ip neigh del {address} dev {name} 2>/dev/null || true")

    def before(step):
        if step == "attempt":
            sender.admin(f"ip neigh replace {address} lladdr 02:00:00:00:00:99 nud permanent dev {name}")
        elif step == "counters" and is_mended:
            mend()

    try:
        found = check(both(hosts, is_ethernet_allowed=True), before={"attempt": before})
    finally:
        mend()
    attempt = found.evidence["attempt"]
    assert (attempt["status"], attempt["canary_intact"], attempt["target_in_rts"]) == (12, True, True), attempt
    least, most = found.evidence["expected_s"]
    assert least <= attempt["took_s"] <= most
    if is_mended:
        assert (found.judged.verdict, found.judged.is_confirmed) == ("ISOLATED", False), found.judged.sentence
    else:
        assert found.judged.verdict == "INCONCLUSIVE"
        assert "positive control after" in found.judged.sentence


@pytest.mark.django_db
def test_the_row_of_such_a_leak_alarms_and_a_guarded_one_does_not(hosts, settings):
    subnet = Subnet.objects.create(name="lab")
    scope = operations.create_probe_set(
        subnet=subnet, name="guests", actor=SYSTEM, settings=ScopeSettings(is_patient=True)
    )
    rows = []
    for number in (1, 2):
        server = Server.objects.create(subnet=subnet, hostname=f"guest-{number}")
        row = operations.add_probe_host(
            server=server, address="127.0.0.1", ssh_user="fabricui-probe", host_key=HOST_KEY, program_digest="1" * 64,
            wrapper_digest="2" * 64, actor=SYSTEM,
        )  # fmt: skip
        operations.add_to_probe_set(scope=scope, host=row, actor=SYSTEM)
        rows.append(row)
    ways = dict(zip([row.pk for row in rows], hosts, strict=True))

    def run():
        made = operations.attempt_now(sender=rows[0], target=rows[1], actor=SYSTEM)
        attempts.run(check_id=made.pk, connect=lambda host: nullcontext(ways[host.pk]))
        return IsolationCheck.objects.get(pk=made.pk)

    guarded = run()
    assert (guarded.state, guarded.verdict, guarded.sentence) == ("DONE", "INCONCLUSIVE", NOT_ON_ETHERNET)
    assert not Incident.objects.exists()
    settings.PROBE_ISOLATION_ON_ETHERNET = True
    leak = run()
    assert (leak.state, leak.verdict) == ("DONE", "LEAK"), leak.sentence
    assert Incident.objects.get(acknowledged_at=None).leak == leak

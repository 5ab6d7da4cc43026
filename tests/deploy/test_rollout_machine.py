"""Any order of moves, faults, crashes and takeovers: whatever happens, the promises below hold.

- nothing is placed before all hosts have staged it
- no port ever holds keys of two tenants, in any state between two steps of anybody
- every file is a revision that is known, unless somebody edited it by hand
- no port is in fallback by our doing
- PROVEN means equal files and tables as planned
- every transition has its event; every end is named and says why
- a fencing generation never falls, neither in the database nor beside a file
- a rollout that is over leaves no hosts that differ; one rollout at a time holds the subnet
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from audit.models import Event
from deploy import operations, queries
from deploy.errors import DeployError
from deploy.models import Revision, Rollout
from inventory.models import Subnet
from remote.errors import CallTimedOut, FileNotWritable
from subnet.pkey import FULL_BIT
from tests.deploy.conftest import (
    INFERENCE,
    OLGA,
    PARTITIONS,
    RENDER,
    TRAINING,
    make_scene,
    one_host_at_a_time,
    set_clock,
)
from tests.deploy.fakes import Clock, Killed, failing, sha256, unreachable

State = Rollout.State
CLOCK = Clock()  # one for all machines: it stands in for Django's
VERBS = ("identify", "sm_state", "read", "stage", "place", "reload", "barrier", "read_tables", "log_since")
HOSTS = ("mgr-a", "mgr-b")
FAULTS: dict[str, Callable[[], BaseException]] = {
    "worker killed": lambda: Killed("the worker"),
    "SSH cut": unreachable,
    "timed out": lambda: CallTimedOut("the call was not over in time."),
    "disk full": lambda: FileNotWritable(73, "fabricui cannot write there (0 KiB free)."),
}
EDITS = (b"by hand\n", b"", b"Default=0x7fff: ALL=full;\r\n")
OWNERS = {int(pkey): tenant for _, pkey, tenant in PARTITIONS}


class RolloutMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.clock = CLOCK
        self.clock.now, self.clock.jumped = Clock().now, timedelta()
        self.scene = make_scene(self.clock)
        self.states: dict[int, list[str]] = {}  # rollout → the states it was seen in
        self.generations: dict[str, int] = {}
        self.strangers = 0  # hand edits and foreign SMs so far: from then on a fallback need not be our doing
        sweep = self.scene.site.sweep

        def watched(*arguments: object, **columns: object) -> None:
            sweep(*arguments, **columns)  # type: ignore[arg-type]
            self.no_port_holds_keys_of_two_tenants()

        self.scene.site.sweep = watched  # type: ignore[method-assign]

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    @property
    def rollout(self) -> Rollout | None:
        return queries.running_rollout(self.scene.subnet)

    # --- what people do ---------------------------------------------------------------------------------------------

    @rule(server=st.integers(1, 4), place=st.sampled_from([TRAINING, INFERENCE, RENDER, None]))
    def start(self, server, place):
        was = self.scene.where.pop(server, None)
        if place is not None:
            self.scene.where[server] = place
        parent = queries.current_revision(self.scene.subnet)
        assert parent is not None
        try:
            revision = operations.propose(subnet=self.scene.subnet, table=self.scene.table(), parent=parent, actor=OLGA)
            before = queries.latest_observation(self.scene.subnet) if self.rollout else self.scene.look()
            if before is not None:
                self.scene.start(revision, before)
        except DeployError:  # refused, with a sentence; the invariants see that nothing is half done
            self.scene.where.pop(server, None)
            if was is not None:
                self.scene.where[server] = was

    @precondition(lambda self: self.rollout is not None and self.rollout.state in (State.QUEUED, State.STAGING))
    @rule(really=st.integers(0, 4))
    def cancel(self, really):
        if really == 0:
            operations.cancel(rollout=self.rollout, actor=OLGA)

    @precondition(lambda self: self.rollout is not None and self.rollout.state == State.UNPROVEN)
    @rule()
    def accept(self):
        with contextlib.suppress(DeployError):
            operations.accept(rollout=self.rollout, actor=OLGA, reason="for a test")

    @rule()
    def freeze_or_thaw(self):
        is_frozen = Subnet.objects.get().frozen_at is not None
        Subnet.objects.update(frozen_at=None if is_frozen else timezone.now())

    @precondition(lambda self: self.rollout is not None and self.rollout.state == State.STUCK)
    @rule()
    def a_person_mends_and_lets_go(self):
        self._mend()
        rollout = self.rollout
        assert rollout is not None
        operations.release_stuck(rollout=rollout, actor=OLGA, reason="mended")
        self._put_files_back()

    @precondition(lambda self: self.rollout is None)
    @rule()
    def a_person_puts_the_files_back(self):
        self._mend()
        self._put_files_back()

    def _put_files_back(self) -> None:
        current = queries.current_revision(self.scene.subnet)
        assert current is not None
        for host in self.scene.site.hosts:
            host.file = bytes(current.data)
        self.scene.site.sweep(self.scene.site.master, is_new=True)

    # --- what the worker does ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.rollout is not None)
    @rule(later=st.booleans())
    def run(self, later):
        if later:
            self.clock.forward(600)
        self._run()

    @precondition(lambda self: self.rollout is not None)
    @rule(
        verb=st.sampled_from(VERBS),
        host=st.sampled_from(HOSTS),
        when=st.sampled_from(["before", "after"]),
        fault=st.sampled_from(sorted(FAULTS)),
        times=st.sampled_from([1, 2, 1000]),
    )
    def run_into_a_fault(self, verb, host, when, fault, times):
        self.clock.forward(600)
        self.scene.site.fail = failing(FAULTS[fault], verb=verb, host=host, when=when, times=times)
        self._run()
        self.scene.site.fail = lambda *_: None

    @precondition(lambda self: self.rollout is not None)
    @rule(
        verb=st.sampled_from(VERBS),
        host=st.sampled_from(HOSTS),
        when=st.sampled_from(["before", "after"]),
        event=st.sampled_from(
            ["OpenSM killed", "host lost", "takeover", "hand edit", "third SM", "reboot", "foreign sweep",
             "second worker", "clock ahead", "clock back", "port absent", "freeze"]
        ),
        data=st.data(),
    )  # fmt: skip
    def run_while_something_happens(self, verb, host, when, event, data):
        self.clock.forward(600)
        done: list[bool] = []

        def fail(its_host: str, its_verb: str, its_when: str) -> None:
            if (its_host, its_verb, its_when) == (host, verb, when) and not done:
                done.append(True)
                self._happen(event, host, data)

        self.scene.site.fail = fail
        self._run()
        self.scene.site.fail = lambda *_: None

    @precondition(lambda self: self.rollout is not None)
    @rule()
    def the_message_comes_twice(self):
        self._run()
        self._run()

    def _run(self) -> None:
        rollout = self.rollout
        if rollout is None:
            return
        try:
            self.scene.run(rollout)
        except Killed:
            rollout.refresh_from_db()
        if rollout.state == State.PROVEN:
            self._check_proof(rollout)

    def _check_proof(self, rollout: Rollout) -> None:
        hosts = self.scene.site.hosts
        assert {host.digest for host in hosts} == {rollout.revision.digest}
        assert rollout.read_back["discrepancies"] == []
        held = rollout.revision.partition_table().by_port()
        for guid, entries in self.scene.site.when_read.items():  # a foreign SM may have come the moment after
            keys = {key & ~FULL_BIT for key in entries} - {0x7FFF}
            assert keys == {int(pkey) for pkey in held.get(guid, {})}, guid

    # --- what happens to the site -----------------------------------------------------------------------------------

    @rule(
        event=st.sampled_from(
            ["OpenSM killed", "host lost", "takeover", "hand edit", "third SM", "reboot", "foreign sweep",
             "clock ahead", "clock back", "port absent"]
        ),
        host=st.sampled_from(HOSTS),
        data=st.data(),
    )  # fmt: skip
    def something_happens(self, event, host, data):
        self._happen(event, host, data)

    def _happen(self, event: str, name: str, data: st.DataObject) -> None:
        site = self.scene.site
        host = site.host(name)
        match event:
            case "OpenSM killed":
                if host.is_running:
                    host.stop_opensm()
            case "host lost":
                host.is_reachable = False
            case "takeover":
                if host.is_running and host.role == "MASTER":
                    host.stop_opensm()
                    site.takeover()
                    host.start_opensm()
            case "hand edit":
                self.strangers += 1
                host.file = data.draw(st.sampled_from(EDITS))
            case "third SM":
                if site.rogue is None:
                    self.strangers += 1
                    site.start_rogue(site.guids(4)[0])
            case "reboot" | "port absent":
                guid = data.draw(st.sampled_from([guid for server in (1, 2, 3, 4) for guid in site.guids(server)]))
                if event == "reboot":
                    site.reboot(guid)
                else:
                    site.ports[guid].is_absent = True
            case "foreign sweep":
                if site.master is not None and site.rogue is None:
                    site.sweep(site.master)
            case "second worker":
                rollout = self.rollout
                if rollout is not None:
                    calls = len(site.calls)
                    self.scene.run(Rollout.objects.get(pk=rollout.pk))
                    assert len(site.calls) == calls, "a second worker touched a host"
            case "clock ahead":
                self.clock.jump(86_400)
            case "clock back":
                self.clock.jump(-86_400)
            case "freeze":
                Subnet.objects.update(frozen_at=timezone.now())

    @rule()
    def takeover(self):
        self.scene.site.takeover()

    @rule()
    def everybody_comes_back(self):
        self._mend()

    def _mend(self) -> None:
        site = self.scene.site
        site.fail = lambda *_: None
        site.stop_rogue()
        for host in site.hosts:
            host.is_reachable = True
            if not host.is_running:
                host.start_opensm()
        site.takeover()
        for port in site.ports.values():
            if port.is_absent:
                port.is_absent = False
                site.reboot(port.guid)
        if site.master is not None:
            site.sweep(site.master)
        Subnet.objects.update(frozen_at=None)

    # --- what holds -------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_placed_before_all_hosts_have_staged_it(self):
        staged: dict[str, set[str]] = {}
        placed: set[str] = set()
        went_back = self._went_back()
        for what, host, digest in self.scene.site.notes:
            if what == "staged":
                staged.setdefault(digest, set()).add(host)
            elif digest not in placed and digest not in went_back:
                assert staged[digest] == set(HOSTS), "placed before every host had staged it"
                placed.add(digest)

    def _went_back(self) -> set[str]:
        """A restore places on whichever host it can reach."""
        return set(Rollout.objects.exclude(contrary="").values_list("parent__digest", flat=True))

    @invariant()
    def no_port_holds_keys_of_two_tenants(self):
        for guid, port in self.scene.site.ports.items():
            tenants = {OWNERS[key & ~FULL_BIT] for key in port.pkeys.values() if key & ~FULL_BIT in OWNERS}
            assert len(tenants) <= 1, f"port {guid} holds keys of {tenants}"

    @invariant()
    def every_file_is_a_known_revision(self):
        known = set(Revision.objects.values_list("digest", flat=True)) | {sha256(edit) for edit in EDITS}
        assert {host.digest for host in self.scene.site.hosts} <= known

    @invariant()
    def no_port_is_in_fallback_by_our_doing(self):
        if self.strangers:
            return
        sm_ports = {host.port.guid for host in self.scene.site.hosts}
        for guid, port in self.scene.site.ports.items():
            if guid not in sm_ports and not port.is_booting and not port.is_absent:
                assert port.pkeys.get(0) == 0x7FFF, f"port {guid} is a full member of Default"

    @invariant()
    def every_end_is_named_and_says_why(self):
        for rollout in Rollout.objects.exclude(state__in=[State.QUEUED, State.PROVEN]):
            if State(rollout.state).is_running and rollout.state != State.RESTORING:
                continue
            assert rollout.cause.rstrip(" ”").endswith((".", ")")), (rollout.state, rollout.cause)
            if rollout.state == State.STUCK:
                assert "let go of this rollout" in rollout.cause

    @invariant()
    def every_transition_has_its_event(self):
        told: dict[str, list[str]] = {}
        events = Event.objects.filter(subject_kind="rollout").order_by("number")
        for key, action, after in events.values_list("subject_key", "action", "after"):
            if action.rpartition(":")[2] not in ("release", "check-again", "accept"):
                told.setdefault(key, []).append(after["state"])
        for rollout in Rollout.objects.prefetch_related("steps"):
            states = told[rollout.public_id]
            assert states[0] == State.QUEUED
            assert states[-1] == rollout.state
            seen = self.states.setdefault(rollout.pk, [])
            assert states[: len(seen)] == seen
            self.states[rollout.pk] = states
            assert len({step.state for step in rollout.steps.all()}) >= len(set(states))

    @invariant()
    def generations_never_fall(self):
        now = {host.name: host.sidecar[0] for host in self.scene.site.hosts} | {"fence": self.scene.fence.generation}
        for name, generation in now.items():
            assert generation >= self.generations.get(name, 0)
            assert generation <= now["fence"]
        self.generations = now

    @invariant()
    def a_rollout_that_is_over_leaves_equal_files(self):
        current = queries.current_revision(self.scene.subnet)
        assert current is not None
        edited = {sha256(edit) for edit in EDITS}
        if self.rollout is None:
            assert self.scene.digests() - edited <= {current.digest}

    @invariant()
    def at_most_one_rollout_holds_the_subnet(self):
        over = [State.PROVEN, State.REFUSED, State.CANCELLED, State.RESTORED]
        unfinished = Rollout.objects.exclude(state__in=over).filter(released_at=None)
        assert unfinished.count() == (0 if self.rollout is None else 1)


@pytest.mark.django_db
def test_whatever_happens_the_promises_hold(monkeypatch: pytest.MonkeyPatch):
    set_clock(monkeypatch, CLOCK)
    one_host_at_a_time(monkeypatch)
    run_state_machine_as_test(
        RolloutMachine,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

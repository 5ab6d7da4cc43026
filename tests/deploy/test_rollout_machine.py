"""Any order of moves, faults, crashes and takeovers: whatever happens, the promises below hold.

- nothing is placed before all hosts have staged it
- PROVEN means equal files and tables as planned
- every transition has its event
- a fencing generation never falls, neither in the database nor beside a file
- a rollout that is over leaves no hosts that differ; one rollout at a time holds the subnet
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from audit.models import Event
from deploy import operations, queries
from deploy.errors import DeployError
from deploy.models import Rollout
from remote.errors import CallTimedOut, FileNotWritable
from subnet.pkey import FULL_BIT
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, make_scene, one_host_at_a_time
from tests.deploy.fakes import Clock, Killed, failing, unreachable

State = Rollout.State
CLOCK = Clock()  # one for all machines: it stands in for Django's
VERBS = ("identify", "sm_state", "read", "stage", "place", "reload", "barrier", "read_tables", "log_since")
FAULTS: dict[str, Callable[[], BaseException]] = {
    "killed": lambda: Killed("the worker"),
    "unreachable": unreachable,
    "timed out": lambda: CallTimedOut("the call was not over in time."),
    "disk full": lambda: FileNotWritable(73, "fabricui cannot write there (0 KiB free)."),
}


class RolloutMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.clock = CLOCK
        self.clock.now = Clock().now
        self.scene = make_scene(self.clock)
        self.states: dict[int, list[str]] = {}  # rollout → the states it was seen in
        self.generations: dict[str, int] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    @property
    def rollout(self) -> Rollout | None:
        return queries.running_rollout(self.scene.subnet)

    # --- what people do ---------------------------------------------------------------------------------------------

    @rule(server=st.integers(1, 4), place=st.sampled_from([TRAINING, INFERENCE]))
    def start(self, server, place):
        self.scene.where[server] = place
        parent = queries.current_revision(self.scene.subnet)
        assert parent is not None
        with contextlib.suppress(DeployError):  # refused, with a sentence; the invariants see that nothing is half done
            revision = operations.propose(subnet=self.scene.subnet, table=self.scene.table(), parent=parent, actor=OLGA)
            before = queries.latest_observation(self.scene.subnet) if self.rollout else self.scene.look()
            if before is not None:
                self.scene.start(revision, before)

    @precondition(lambda self: self.rollout is not None and self.rollout.state == State.QUEUED)
    @rule(really=st.integers(0, 4))
    def cancel(self, really):
        if really == 0:
            operations.cancel(rollout=self.rollout, actor=OLGA)

    @precondition(lambda self: self.rollout is not None and self.rollout.state == State.STUCK)
    @rule()
    def a_person_mends_and_lets_go(self):
        self._mend()
        rollout = self.rollout
        assert rollout is not None
        operations.release_stuck(rollout=rollout, actor=OLGA, reason="mended")
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
        host=st.sampled_from(["mgr-a", "mgr-b"]),
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
    @rule(verb=st.sampled_from(VERBS), host=st.sampled_from(["mgr-a", "mgr-b"]), away=st.booleans())
    def lose_a_host_at_a_verb(self, verb, host, away):
        self.clock.forward(600)

        def fail(its_host: str, its_verb: str, when: str) -> None:
            if (its_verb, when) == (verb, "before"):
                lost = self.scene.site.host(host)
                if lost.is_running:
                    lost.stop_opensm()
                    lost.is_reachable = not away

        self.scene.site.fail = fail
        self._run()
        self.scene.site.fail = lambda *_: None

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
        assert self.scene.digests() == {rollout.revision.digest}
        assert rollout.read_back["discrepancies"] == []
        held = rollout.revision.partition_table().by_port()
        for guid, port in self.scene.site.ports.items():
            keys = {key & ~FULL_BIT for key in port.pkeys.values()} - {0x7FFF}
            assert keys == {int(pkey) for pkey in held.get(guid, {})}, guid

    # --- what happens to the site -----------------------------------------------------------------------------------

    @rule()
    def takeover(self):
        self.scene.site.takeover()

    @rule()
    def everybody_comes_back(self):
        self._mend()

    def _mend(self) -> None:
        site = self.scene.site
        site.fail = lambda *_: None
        site.takeover()
        for host in site.hosts:
            host.is_reachable = True
            if not host.is_running:
                host.start_opensm()
        site.takeover()

    # --- what holds -------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_placed_before_all_hosts_have_staged_it(self):
        staged: dict[str, set[str]] = {}
        placed: set[str] = set()
        for what, host, digest in self.scene.site.notes:
            if what == "staged":
                staged.setdefault(digest, set()).add(host)
            elif digest not in placed and digest not in self._went_back():
                assert staged[digest] == {"mgr-a", "mgr-b"}, "placed before every host had staged it"
                placed.add(digest)

    def _went_back(self) -> set[str]:
        """A restore places on whichever host it can reach."""
        return set(Rollout.objects.exclude(contrary="").values_list("parent__digest", flat=True))

    @invariant()
    def every_transition_has_its_event(self):
        for rollout in Rollout.objects.all():
            events = Event.objects.filter(subject_kind="rollout", subject_key=rollout.public_id)
            told = [
                event.after["state"]
                for event in events.order_by("number")
                if event.action not in ("deploy:rollout:release", "deploy:rollout:check-again")
            ]
            assert told[0] == State.QUEUED
            assert told[-1] == rollout.state
            seen = self.states.setdefault(rollout.pk, [])
            assert told[: len(seen)] == seen
            self.states[rollout.pk] = told
            assert rollout.steps.values("state").distinct().count() >= len(set(told))

    @invariant()
    def generations_never_fall(self):
        now = {host.name: host.sidecar[0] for host in self.scene.site.hosts} | {"fence": self.scene.fence.generation}
        for name, generation in now.items():
            assert generation >= self.generations.get(name, 0)
        self.generations = now

    @invariant()
    def a_rollout_that_is_over_leaves_equal_files(self):
        current = queries.current_revision(self.scene.subnet)
        assert current is not None
        if self.rollout is None:
            assert self.scene.digests() == {current.digest}

    @invariant()
    def at_most_one_rollout_holds_the_subnet(self):
        over = [State.PROVEN, State.REFUSED, State.CANCELLED, State.RESTORED]
        unfinished = Rollout.objects.exclude(state__in=over).filter(released_at=None)
        assert unfinished.count() == (0 if self.rollout is None else 1)


@pytest.mark.django_db
def test_whatever_happens_the_promises_hold(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("django.utils.timezone.now", CLOCK)
    one_host_at_a_time(monkeypatch)
    run_state_machine_as_test(
        RolloutMachine,
        settings=settings(
            max_examples=40,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

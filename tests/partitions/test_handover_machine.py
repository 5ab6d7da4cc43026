"""Whatever people and rollouts do in whatever order, no port goes from one tenant's key to another's unproven.

The model keeps, for each server, the tenants whose key it may hold or held last. Only a successful `mark_clean`
empties that, and it may succeed only when no key of a tenant is left and none was placed without a proof since.
"""

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit import follow
from deploy.errors import DeployError
from deploy.models import Fence, Revision, Rollout
from inventory.models import Port
from partitions import operations
from partitions.errors import MoveRefused, PartitionsError
from partitions.models import StagedChange
from partitions.selection import Selection
from partitions.standing import Standing
from tests.partitions.site import Provider, build

SERVERS, PARTITIONS = 2, 4
State = Rollout.State
ENDS = (State.PROVEN, State.PROVEN, State.PROVEN, State.RESTORED, State.STUCK, State.REFUSED, State.CANCELLED)
servers, partitions = st.integers(0, SERVERS - 1), st.integers(0, PARTITIONS - 1)
carry = st.tuples(
    st.just("carry"), st.sampled_from([0, 0, 1]), st.sampled_from([None, 0, 2]), st.sampled_from((State.PROVEN, *ENDS))
)
steps = st.one_of(
    carry,
    st.tuples(st.just("wash"), servers),
    st.tuples(st.just("on"), servers, st.sampled_from([None, *range(PARTITIONS)])),
    st.tuples(st.just("add"), servers, partitions),
    st.tuples(st.just("discard"), servers),
    st.tuples(st.just("start"), st.sampled_from(["mine", "all", "acme", "bert"])),
    st.tuples(st.just("end"), st.sampled_from(ENDS)),
    st.tuples(st.just("go"), st.sampled_from(["mine", "all", "acme", "bert"]), st.sampled_from(ENDS)),
    st.tuples(st.just("clean"), servers),
    st.tuples(st.just("retire"), partitions),
    st.just(("look",)),
    st.just(("tick",)),
)

# Moves that go as far as they may come first: most of what could go wrong begins with a server that was somewhere.
journeys = st.builds(
    lambda first, then: [*first, *then], st.lists(carry, min_size=3, max_size=6), st.lists(steps, max_size=10)
)


class Journey:
    """A provider on rows, and beside it what must be true of it."""

    def __init__(self) -> None:
        self.provider: Provider = build()
        acme, bert = self.provider.acme, self.provider.bert
        self.partitions = [
            self.provider.partition("a1", acme), self.provider.partition("a2", acme),
            self.provider.partition("b1", bert), self.provider.partition("shared", None),
        ]  # fmt: skip
        for number in range(SERVERS):
            self.provider.server(number + 1)
        follow.tick()
        self.of_guid = {str(port.guid): port.hca.server.hostname for port in Port.objects.select_related("hca__server")}
        self.had: dict[str, set[str]] = {server.hostname: set() for server in self.provider.servers}
        self.unproven: set[str] = set()  # servers that hold what a stuck rollout left
        self.running: Rollout | None = None

    def tenants(self, revision: Revision) -> dict[str, set[str]]:
        """Whose keys each server would hold by a revision."""
        found: dict[str, set[str]] = {hostname: set() for hostname in self.had}
        for partition, member in revision.partition_table().memberships():
            if partition.tenant is not None:
                found[self.of_guid[str(member.guid)]].add(partition.tenant)
        return found

    def do(self, step: tuple) -> None:
        verb, *rest = step
        getattr(self, verb)(*rest)

    def on(self, server: int, target: int | None) -> None:
        moved = self.provider.servers[server]
        here = Standing.of(moved).partitions_wanted()
        place = None if target is None else self.partitions[target]
        self.provider.move(moved, here[0] if here else None, place)

    def carry(self, server: int, target: int | None, state: State) -> None:
        self.end(State.PROVEN)
        self.on(server, target)
        self.go("all", state)

    def wash(self, server: int) -> None:
        self.look()
        self.clean(server)

    def add(self, server: int, target: int) -> None:
        operations.stage_add(
            server=self.provider.servers[server], target=self.partitions[target], actor=self.provider.olga
        )

    def discard(self, server: int) -> None:
        changes = StagedChange.objects.of_server(self.provider.servers[server])
        operations.discard(changes=changes, actor=self.provider.olga)

    def retire(self, partition: int) -> None:
        operations.retire_partition(partition=self.partitions[partition], actor=self.provider.olga)

    def look(self) -> None:
        self.provider.observe()

    def tick(self) -> None:
        follow.tick()

    def start(self, whose: str) -> None:
        if self.running is not None:
            return
        chosen = {"mine": Selection.mine(), "all": Selection.everything()}
        selection = chosen.get(whose) or Selection.of_tenant(getattr(self.provider, whose))
        rollout = self.provider.roll_out(self.provider.olga, selection, reason="machine")
        for hostname, tenants in self.tenants(rollout.revision).items():
            assert len(tenants) <= 1, f"{hostname} would be with {tenants}"
            assert not tenants or self.had[hostname] <= tenants, f"{hostname} overtakes: {self.had[hostname]}"
        self.running = rollout

    def end(self, state: State) -> None:
        rollout, self.running = self.running, None
        if rollout is None:
            return
        if state == State.PROVEN:
            self.provider.prove(rollout)
            self.unproven.clear()
        else:
            self.provider.end(rollout, state)
        if state in (State.PROVEN, State.RESTORED, State.STUCK):
            for hostname, tenants in self.tenants(rollout.revision).items():
                self.had[hostname] |= tenants
                if tenants and state == State.STUCK:
                    self.unproven.add(hostname)

    def go(self, whose: str, state: State) -> None:
        self.start(whose)
        self.end(state)

    def clean(self, server: int) -> None:
        cleaned = self.provider.servers[server]
        operations.mark_clean(server=cleaned, actor=self.provider.otto, reason="machine")
        current = Fence.objects.get().current
        assert not self.tenants(current)[cleaned.hostname], "clean while a member"
        assert self.running is None or not self.tenants(self.running.revision)[cleaned.hostname], "clean while placing"
        assert cleaned.hostname not in self.unproven, "clean without a proof"
        self.had[cleaned.hostname] = set()


def walk(journey: list[tuple]) -> None:
    it = Journey()
    for step in journey:
        try:
            with transaction.atomic():
                it.do(step)
        except (MoveRefused, PartitionsError, DeployError):
            pass


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(journeys)
def test_no_order_of_events_lets_a_tenant_overtake_another(db, journey):
    with transaction.atomic():
        walk(journey)
        transaction.set_rollback(True)


def test_the_machine_reaches_the_second_half(db):
    """The journey that ends at the other tenant, so that the property above is about something."""
    it = Journey()
    for step in [
        ("on", 0, 0), ("go", "mine", State.PROVEN), ("on", 0, 2), ("go", "mine", State.PROVEN), ("look",),
        ("clean", 0), ("go", "mine", State.PROVEN), ("tick",),
    ]:  # fmt: skip
        it.do(step)
    assert it.tenants(Fence.objects.get().current)["srv-001"] == {"bert"}
    assert it.had["srv-001"] == {"bert"}

"""Whatever people do in whatever order: rows, plan, policy, board and mirror tell one story."""

from collections.abc import Collection

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit import follow
from inventory.models import Server
from partitions import operations
from partitions.board import board
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Membership, StagedChange
from partitions.selection import Selection
from partitions.standing import Standing
from subnet import policy
from subnet.pkey import Membership as Kind
from subnet.plan import diff
from tests.partitions.site import Provider, build

SERVERS, PARTITIONS = 3, 4
places = st.sampled_from([None, *range(PARTITIONS)])
steps = st.one_of(
    st.tuples(st.just("move"), st.integers(0, SERVERS - 1), places, places, st.sampled_from(Kind), st.booleans()),
    st.tuples(st.just("on"), st.integers(0, SERVERS - 1), places, st.sampled_from(Kind), st.booleans()),
    st.tuples(st.just("kind"), st.integers(0, SERVERS - 1), st.integers(0, PARTITIONS - 1), st.sampled_from(Kind)),
    st.tuples(st.just("clean"), st.integers(0, SERVERS - 1)),
    st.tuples(st.just("retire"), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("add"), st.integers(0, SERVERS - 1), st.integers(0, PARTITIONS - 1), st.sampled_from(Kind)),
    st.tuples(st.just("discard"), st.integers(0, SERVERS - 1), st.booleans()),
    st.just(("settle",)),
)


def changes_of(plan) -> set[tuple]:
    return {(str(c.guid), int(c.pkey), c.from_membership, c.to_membership) for c in plan.changes}


def staged(*, but: Collection[StagedChange] = ()) -> set[tuple]:
    """The staged changes as values, without the waiting ones."""
    rows = StagedChange.objects.exclude(pk__in=[row.pk for row in but]).select_related("port", "partition")
    return {(str(row.port), row.partition.pkey, row.kind_from, row.kind_to) for row in rows}


def do(provider: Provider, partitions: list, step: tuple) -> None:
    def place(index):
        return None if index is None else partitions[index]

    verb, *rest = step
    if verb == "move":
        server, source, target, kind, is_olga = rest
        operations.stage_move(
            server=provider.servers[server], source=place(source), target=place(target), membership=kind,
            actor=provider.olga if is_olga else provider.otto,
        )  # fmt: skip
    elif verb == "on":  # from wherever the board shows it
        server, target, kind, is_olga = rest
        here = Standing.of(provider.servers[server]).partitions_wanted()
        operations.stage_move(
            server=provider.servers[server], source=here[0] if here else None, target=place(target), membership=kind,
            actor=provider.olga if is_olga else provider.otto,
        )  # fmt: skip
    elif verb == "add":
        server, target, kind = rest
        operations.stage_add(
            server=provider.servers[server], target=partitions[target], membership=kind, actor=provider.olga
        )
    elif verb == "kind":
        server, at, kind = rest
        operations.stage_membership(
            server=provider.servers[server], partition=partitions[at], membership=kind, actor=provider.olga
        )
    elif verb == "clean":
        operations.mark_clean(server=provider.servers[rest[0]], actor=provider.otto, reason="property")
    elif verb == "retire":
        operations.retire_partition(partition=partitions[rest[0]], actor=provider.olga)
    elif verb == "discard":
        server, is_olga = rest
        operations.discard(
            changes=StagedChange.objects.of_server(provider.servers[server]),
            actor=provider.olga if is_olga else provider.otto,
        )
    elif not provider.plan(provider.olga, Selection.everything()).is_idle:
        provider.settle(provider.roll_out(provider.olga, Selection.everything(), reason="property"))


def check(provider: Provider) -> None:
    drawn = provider.plan(provider.olga, Selection.everything())
    going = staged(but=[waiting.change for waiting in drawn.waiting])
    assert changes_of(drawn.plan) == going
    assert changes_of(diff(drawn.table, drawn.current, None)) == {(g, p, to, came) for g, p, came, to in going}
    assert diff(drawn.table, drawn.table, None).is_empty
    assert not drawn.refusals
    violations = policy.check(drawn.table, policy.Limits(64), sm_ports_registered=drawn.table.sm_ports)
    assert not [violation for violation in violations if violation.severity == "refuse"]
    rows = Membership.objects.select_related("partition", "port")
    assert {(row.partition.pkey, row.port.guid, row.kind) for row in rows} == {
        (int(p.pkey), m.guid, m.membership.value) for p, m in drawn.current.memberships()
    }
    wanted = {(int(p.pkey), drawn.table.labels[m.guid]) for p, m in drawn.table.memberships()}
    waiting = {(waits.change.partition.pkey, waits.server.hostname) for waits in drawn.waiting}
    assert not wanted & waiting
    wanted |= waiting
    columns = board(subnet=provider.subnet, user=provider.olga).columns
    assert {(int(c.pkey, 16), card.hostname) for c in columns[1:] for card in c.cards} == wanted
    placed = {hostname for _, hostname in wanted}
    assert {card.hostname for card in columns[0].cards} == {s.hostname for s in provider.servers} - placed


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(steps, max_size=12))
def test_rows_plan_policy_board_and_mirror_agree(db, journey):
    with transaction.atomic():
        provider = build()
        partitions = [
            provider.partition("a1", provider.acme), provider.partition("a2", provider.acme),
            provider.partition("b1", provider.bert), provider.partition("shared", None),
        ]  # fmt: skip
        for number in range(SERVERS):
            provider.server(number + 1)
        follow.tick()
        for step in journey:
            before = staged()
            try:
                with transaction.atomic():
                    do(provider, partitions, step)
            except (MoveRefused, PartitionRefused):
                assert staged() == before
            check(provider)
        transaction.set_rollback(True)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hostname=st.text(min_size=1, max_size=80))
def test_no_hostname_can_write_into_the_file(db, hostname):
    """What a server calls itself is a claim; in the file it is a label and nothing else."""
    from subnet import partitions_conf

    with transaction.atomic():
        provider = build()
        server = provider.server(1)
        Server.objects.filter(pk=server.pk).update(hostname=hostname.replace("\0", "?"))
        provider.move(server, None, provider.partition("training", provider.acme))
        drawn = provider.plan(provider.olga)
        assert partitions_conf.parse_strict(drawn.data).table == drawn.table
        transaction.set_rollback(True)

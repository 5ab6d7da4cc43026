"""Count the pairs of a large scope by blocks of hosts: 512 hosts have 261,632 rows a profile.

The rows are read plainly and counted here: in SQLite a join with the hosts' places and the grouping cost four times as
much, and Django's own reading spends most of its time on moments, of which only the oldest of a block is wanted.
"""

from datetime import UTC, datetime
from typing import Any

from django.db import connection

from probes.heat import Block, Node, grouped
from probes.models import ProbePair, ProbeScope
from probes.terms import Outcome

_SQL = """
SELECT sender_id, target_id, rail, outcome, verdict, CAST(newest_at AS text), {value}, pct_line FROM {table}
WHERE scope_id = %s AND profile = %s AND kind = %s AND mode = %s
"""
_GOOD = frozenset({Outcome.OK.value, Outcome.TCP_OK.value})


def counted(
    scope: ProbeScope, nodes: list[tuple[int, Node]], *, profile: str, kind: str, is_latency: bool
) -> list[Block]:
    """The blocks of `nodes`, which are (row id of the host, node) in their order. One query.

    Of a pair with several rails every failed and every bad one counts, and the pair once as tested.
    """
    hosts = {node.key: host for host, node in nodes}
    place = {
        hosts[node.key]: number for number, group in enumerate(grouped([node for _, node in nodes])) for node in group
    }
    table = connection.ops.quote_name(ProbePair._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL.format(value="p50_ns" if is_latency else "gbps", table=table), [scope.pk, profile, kind, scope.mode]
        )
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    inside: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for row in rows:
        one, other = place.get(row[0]), place.get(row[1])
        if one is not None and other is not None:
            inside.setdefault((one, other), []).append(row)
    return [_block(row, column, mine, is_latency=is_latency) for (row, column), mine in inside.items()]


def _block(row: int, column: int, rows: list[tuple[Any, ...]], *, is_latency: bool) -> Block:
    senders, targets, rails, outcomes, verdicts, moments, values, shares = zip(*rows, strict=True)
    known = [value for value in values if value is not None]
    least, most = min(known, default=None), max(known, default=None)
    tested = len(rows) if not any(rails) else len(set(zip(senders, targets, strict=True)))
    failed = sum(outcome not in _GOOD for outcome in outcomes)
    return Block(
        row, column, tested, failed, verdicts.count("BAD"), _moment(min(moments)), most if is_latency else least,
        min((share for share in shares if share is not None), default=None), least if is_latency else most,
    )  # fmt: skip


def _moment(text: str) -> datetime:
    """A moment as either database writes it; both are set to UTC, and their texts sort by time."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

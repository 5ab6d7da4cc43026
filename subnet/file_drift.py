"""A partition file that is not the current revision: what OpenSM makes of it, and in words what that changes. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from subnet.adoption import Note, table_of
from subnet.change import Change, FlagValue
from subnet.errors import SubnetError
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.observed import ObservedFabric
from subnet.opensm_reading import Fabric, Finding, check, read
from subnet.plan import Plan, diff
from subnet.table import PartitionTable

MOST_PORTS: Final = 6  # named in one sentence


@dataclass(frozen=True, slots=True)
class FileDrift:
    """What a file says beside the current table.

    `rejection` is a sentence when OpenSM takes nothing of it; `sentences` are the differences otherwise, and `plan`
    and `found` what they are made of. `unreadable` says why no differences can be told although OpenSM takes it.
    """

    rejection: str
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    plan: Plan | None = field(repr=False)
    found: PartitionTable | None = field(repr=False)
    unreadable: str = ""

    @property
    def changes_nothing(self) -> bool:
        """Whether OpenSM reads the same out of it: only comments, names or the order differ."""
        return self.plan is not None and self.plan.is_empty


def explain_file(
    current: PartitionTable,
    data: bytes,
    observed: ObservedFabric | None,
    *,
    sm_port: GUID,
    sm_ports: Collection[GUID],
    labels: Mapping[GUID, str] | None = None,
) -> FileDrift:
    """What OpenSM on the host with `sm_port` makes of `data`, against `current`; `observed` is the fabric as last read.

    Partitions are compared by P_Key: another name alone is no difference. `labels` name the servers of ports that the
    current table does not know. Seconds for a large file.
    """
    by_itself = check(data)
    if by_itself.rejection is not None:
        at = f" at line {by_itself.rejection.line}" if by_itself.rejection.line is not None else ""
        sentence = (
            f"OpenSM rejects this file{at} ({by_itself.rejection.message}): every port becomes a full member of "
            "Default and loses every other P_Key. No tenant is isolated then."
        )
        return FileDrift(sentence, (), by_itself.findings, (), None, None)
    if observed is None or sm_port not in observed.ports:
        return FileDrift(
            "", (), by_itself.findings, (), None, None, "No reading of the fabric shows that manager host's port yet."
        )
    reading = read(data, Fabric.from_observed(observed, sm_port=sm_port))
    if reading.rejection is not None:
        return FileDrift(
            f"OpenSM rejects this file on this fabric ({reading.rejection.message}).", (), reading.findings, (), None,
            None,
        )  # fmt: skip
    try:
        adopted = table_of(
            reading,
            Fabric.from_observed(observed, sm_port=sm_port),
            sm_ports=sm_ports,
            labels=current.labels,
            names={partition.pkey: partition.name for partition in current.partitions},
            tenants={p.pkey: p.tenant for p in current.partitions if p.tenant is not None},
        )
        plan = diff(current, adopted.table, None)
    except SubnetError as error:
        return FileDrift("", (), reading.findings, (), None, None, f"No table can hold what it says: {error}")
    sentences = tuple(differences(plan, {**(labels or {}), **current.labels}))
    return FileDrift("", sentences, reading.findings, adopted.notes, plan, adopted.table)


def differences(plan: Plan, labels: Mapping[GUID, str]) -> Iterator[str]:
    """What a plan changes, one sentence a partition and kind of change, Default last."""
    for change in plan.partitions:
        if change.what == "created":
            yield f"Partition {change.name_after} ({change.pkey}) is new: no partition has this P_Key."
        elif change.what == "retired":
            yield f"Partition {change.name_before} ({change.pkey}) has no members any more."
    for word in plan.keywords:
        if word.to_membership is None:
            yield f"{word.keyword} is no member of {word.partition} ({word.pkey}) any more."
        else:
            yield (
                f"{word.keyword} makes every such port of the fabric a {word.to_membership} member of "
                f"{word.partition} ({word.pkey})."
            )
    groups: dict[tuple[object, ...], list[Change]] = {}
    for one in plan.changes:
        groups.setdefault((one.pkey, one.partition, one.from_membership, one.to_membership), []).append(one)
    for (pkey, partition, before, after), changes in groups.items():
        ports = listed(((one.guid, labels.get(one.guid, "")) for one in changes), len(changes))
        if after is None:
            yield f"{ports} {'is' if len(changes) == 1 else 'are'} no longer in {partition} ({pkey})."
        elif before is None:
            what = f"{after} member" if len(changes) == 1 else f"{after} members"
            yield f"{ports} {'is' if len(changes) == 1 else 'are'} in {partition} ({pkey}) too, as {what}."
        else:
            yield f"{ports} {'is' if len(changes) == 1 else 'are'} {after} instead of {before} in {partition} ({pkey})."
    for flag in plan.flags:
        yield (
            f"Flag {flag.flag} of {flag.partition} ({flag.pkey}): {_text(flag.flag, flag.after)} instead of "
            f"{_text(flag.flag, flag.before)}."
        )
    for mgid in plan.mgids:
        yield f"The multicast groups of {mgid.partition} ({mgid.pkey}) are others."
    if plan.default is not None and plan.default.opens:
        yield "Default opens: every port can reach every other."
    elif plan.default is not None and plan.default.closes:
        yield "Default closes for every port that is not excepted."


def listed(ports: Iterable[tuple[GUID, str]], count: int) -> str:
    """“srv-001 (0x…), srv-002 (0x…)”, cut after a few."""
    named = [f"{label} ({guid})" if label else f"port {guid}" for guid, label in islice(ports, MOST_PORTS)]
    rest = f" and {count - len(named)} more" if count > len(named) else ""
    return f"{', '.join(named)}{rest}"


def _text(name: str, value: FlagValue) -> str:
    return ", ".join(Flags(**{name: value}).written()) or "not set"  # type: ignore[arg-type]

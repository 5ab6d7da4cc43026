"""PartitionTable: the whole desired state of one subnet as one sorted, frozen value.

A table holds what people decide (tenants' and the provider's partitions and their members) and the manager hosts'
SM port GUIDs, which the Default partition must name. It also carries the labels that the file shows to a person.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from subnet.errors import InvalidName, InvalidTable
from subnet.guid import GUID
from subnet.pkey import Membership, PKey

# OpenSM keeps 31 bytes of a name and takes a digit-first name for a P_Key (ground truth: OpenSM, 2.2 and 2.3).
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,30}\Z")
_RESERVED_NAMES = {"default"}
_UNSAFE_IN_LABEL = re.compile(r"[^A-Za-z0-9._-]+")


def partition_name(text: str) -> str:
    """`text` if OpenSM reads it as one name and nothing else; raise InvalidName otherwise."""
    if not _NAME.match(text):
        raise InvalidName(
            f"“{text[:60]}” cannot be a partition name: OpenSM would cut or misread it. "
            "Use 1 to 31 letters, digits, “_”, “.” or “-”, beginning with a letter."
        )
    if text.lower() in _RESERVED_NAMES:
        raise InvalidName("“Default” is the partition every port is in; choose another name.")
    return text


def safe_label(text: str) -> str:
    """`text` with everything but `[A-Za-z0-9._-]` collapsed to `_`, at most 60 characters; labels are untrusted."""
    return _UNSAFE_IN_LABEL.sub("_", text)[:60] or "unnamed"


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One port's place in one partition; text from a row or a form is checked and made canonical."""

    guid: GUID
    membership: Membership

    def __post_init__(self) -> None:
        if type(self.guid) is not GUID:
            object.__setattr__(self, "guid", GUID(self.guid))
        if type(self.membership) is not Membership:
            object.__setattr__(self, "membership", Membership(self.membership))


@dataclass(frozen=True, slots=True)
class Partition:
    """A P_Key, its name, its owner's label (None: the provider's) and its members in order of GUID.

    Raises InvalidPKey, InvalidName (also for an owner's label that is not a `safe_label`, because two owners must
    never look like one), or InvalidTable when a port is named twice. P_Key and name are checked here, so that no
    table can exist that OpenSM would misread.
    """

    pkey: PKey
    name: str
    tenant: str | None = None
    members: tuple[Member, ...] = ()
    ipoib: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "pkey", PKey.for_partition(self.pkey))
        partition_name(self.name)
        if self.tenant is not None and self.tenant != safe_label(self.tenant):
            raise InvalidName(
                f"“{self.tenant[:60]}” cannot stand for a tenant in the file. "
                "Use the tenant's slug: 1 to 60 letters, digits, “_”, “.” or “-”."
            )
        ordered = tuple(sorted(self.members))
        object.__setattr__(self, "members", ordered)
        for before, after in pairwise(ordered):
            if before.guid == after.guid:
                raise InvalidTable(f"Port {after.guid} is named twice in partition {self.name} ({self.pkey}).")


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """All partitions of one subnet in order of P_Key, and the SM ports that must be full members of Default.

    `labels` maps a port GUID to the label of its server and is for people only: it changes no P_Key table and does
    not enter the table digest; every label is made a `safe_label`. Raises InvalidTable for a P_Key or a name used
    twice.
    """

    sm_ports: tuple[GUID, ...]
    partitions: tuple[Partition, ...] = ()
    labels: Mapping[GUID, str] = field(default_factory=dict, hash=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sm_ports", tuple(sorted({GUID(text) for text in self.sm_ports})))
        labels = {GUID(text): safe_label(label) for text, label in self.labels.items()}
        object.__setattr__(self, "labels", labels)
        ordered = tuple(sorted(self.partitions, key=lambda partition: partition.pkey))
        object.__setattr__(self, "partitions", ordered)
        names: dict[str, Partition] = {}
        for before, after in pairwise(ordered):
            if before.pkey == after.pkey:
                raise InvalidTable(f"P_Key {after.pkey} stands for both {before.name} and {after.name}.")
        for partition in ordered:
            twin = names.setdefault(partition.name.lower(), partition)
            if twin is not partition:
                raise InvalidTable(f"Two partitions are called {partition.name}: {twin.pkey} and {partition.pkey}.")

    def memberships(self) -> Iterator[tuple[Partition, Member]]:
        """Every (partition, member) pair, in order of P_Key and GUID."""
        for partition in self.partitions:
            for member in partition.members:
                yield partition, member

    def by_port(self) -> dict[GUID, dict[PKey, Membership]]:
        """What each named port holds beside Default, keyed by port GUID and P_Key."""
        held: dict[GUID, dict[PKey, Membership]] = {}
        for partition, member in self.memberships():
            held.setdefault(member.guid, {})[partition.pkey] = member.membership
        return held

    def partition(self, pkey: PKey) -> Partition | None:
        """The partition with this P_Key, if there is one."""
        return next((partition for partition in self.partitions if partition.pkey == pkey), None)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values; GUIDs and P_Keys are text."""
        return {
            "sm_ports": list(self.sm_ports),
            "partitions": [
                {
                    "pkey": str(partition.pkey),
                    "name": partition.name,
                    "tenant": partition.tenant,
                    "ipoib": partition.ipoib,
                    "members": [[member.guid, member.membership.value] for member in partition.members],
                }
                for partition in self.partitions
            ],
            "labels": dict(sorted(self.labels.items())),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "PartitionTable":
        """The table that `to_json` wrote; raise SubnetError when it holds what no table may."""
        return cls(
            sm_ports=tuple(GUID(text) for text in value["sm_ports"]),
            partitions=tuple(_partition_from_json(item) for item in value["partitions"]),
            labels={GUID(guid): label for guid, label in value["labels"].items()},
        )


def _partition_from_json(value: Mapping[str, Any]) -> Partition:
    members: Iterable[tuple[str, str]] = value["members"]
    return Partition(
        pkey=PKey.parse(value["pkey"]),
        name=value["name"],
        tenant=value["tenant"],
        ipoib=value["ipoib"],
        members=tuple(Member(GUID(guid), Membership(membership)) for guid, membership in members),
    )

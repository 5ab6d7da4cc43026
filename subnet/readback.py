"""Whether the fabric holds what a revision says: each port proven, absent, unreadable or discrepant.

Only tables that were read behind a sweep barrier may be given to `compare`; it cannot know (ground truth: read-back,
1). Ports that a rollout touches are judged by the table, all others by what they were before.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from subnet import leaf_copies
from subnet.census import CensusProblem, census, where
from subnet.guid import GUID
from subnet.index import Prediction, predict
from subnet.observed import ObservedFabric, PortReading
from subnet.pkey import DEFAULT, FULL_BIT, Membership, entry, entry_text
from subnet.table import PartitionTable

__all__ = [
    "CensusProblem",
    "Discrepancy",
    "ReadBack",
    "Verdict",
    "census",
    "compare",
    "expected",
]

_STRANGE = " Stop what uses it; it can still reach that partition."
_DEFAULT_KEY = int(DEFAULT)
# OpenSM's answer to a file it dislikes: every port a full member of Default and of nothing else.
_FALLBACK = {0: entry(DEFAULT, Membership.FULL)}


class Verdict(StrEnum):
    """What a read-back says of one port."""

    PROVEN = "PROVEN"
    ABSENT = "ABSENT"
    UNREADABLE = "UNREADABLE"
    DISCREPANT = "DISCREPANT"


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One difference. `is_contrary` says that it is evidence against the revision, not just something that moved.

    Kinds: isolation_lost (of the whole fabric, guid None), missing_key, foreign_key, wrong_membership, index_moved,
    index_unpredicted, unaffected_keys_changed, unaffected_lid_changed, unaffected_state_changed, leaf_copy_differs,
    enforcement_lost, wrong_master_lid.
    """

    guid: GUID | None
    kind: str
    sentence: str
    is_contrary: bool


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The outcome of one comparison.

    `verdicts` covers the HCA ports of before and after; switches' port 0 and routers are compared, and not counted.
    `owed` are affected ports that are not proven, also those that no reading knows; each blocks PROVEN. `drifted` are
    unaffected ports that were unlike the table before and still are. `moved` are unaffected ports with another LID or
    state than before, and what they are. `not_checked` says in sentences what was left out.
    """

    verdicts: Mapping[GUID, Verdict]
    discrepancies: tuple[Discrepancy, ...]
    owed: tuple[GUID, ...]
    drifted: tuple[GUID, ...]
    not_checked: tuple[str, ...]
    unaffected_ports_changed: int
    moved: Mapping[GUID, tuple[int, str]]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers for the evidence; proven + absent + unreadable + discrepant = ports."""
        found = list(self.verdicts.values())
        return {
            "ports": len(found),
            "proven": found.count(Verdict.PROVEN),
            "absent": found.count(Verdict.ABSENT),
            "unreadable": found.count(Verdict.UNREADABLE),
            "discrepant": found.count(Verdict.DISCREPANT),
            "discrepancies": len(self.discrepancies),
            "unaffected_ports_changed": self.unaffected_ports_changed,
        }

    @property
    def is_proven(self) -> bool:
        """Whether every affected port is proven and nothing differs; files and managers are judged elsewhere."""
        return not self.discrepancies and not self.owed

    @property
    def is_contrary(self) -> bool:
        """Whether the fabric holds something else than the revision says, which is a reason to restore."""
        return any(discrepancy.is_contrary for discrepancy in self.discrepancies)


def expected(table: PartitionTable, reading: PortReading, *, is_self: bool = False) -> frozenset[int]:
    """The 16-bit entries that one port should hold, Default included; `is_self`: the master is bound to it."""
    return frozenset(_entries(table, reading, is_self=is_self).values())


def compare(
    *,
    wanted: PartitionTable,
    before: ObservedFabric,
    after: ObservedFabric,
    affected: Collection[GUID],
    predictions: Mapping[GUID, Prediction],
) -> ReadBack:
    """Compare the fabric after a rollout with the table it should hold and with the fabric before.

    An affected port must hold exactly Default and its planned keys, survivors at their index and new keys within the
    predicted set. Any other port must be as it was in keys, indexes, LID and state; one without a before reading, or
    that the SM had not armed by then, is judged by the table: what it held was the hardware's. A leaf switch that
    enforced must go on, with the port's own keys. Every port read must name the one master's LID. A port in before
    alone is absent.
    """
    return _Comparison(wanted, before, after, frozenset(affected), predictions).run()


def _entries(table: PartitionTable, reading: PortReading, *, is_self: bool) -> dict[int, int]:
    """15-bit key → 16-bit entry that a port should hold."""
    keys = table.keys_of(reading.guid, reading.node_type, is_self=is_self)
    return {int(pkey): entry(pkey, membership) for pkey, membership in keys.items()}


class _Comparison:
    """One run of `compare`, with the look-ups that all ports share."""

    def __init__(
        self,
        wanted: PartitionTable,
        before: ObservedFabric,
        after: ObservedFabric,
        affected: frozenset[GUID],
        predictions: Mapping[GUID, Prediction],
    ) -> None:
        self.before = before
        self.after = after
        self.affected = affected
        self.predictions = predictions
        self.wanted = wanted
        self.masters = frozenset(sm.guid for sm in after.masters)
        self.labels = wanted.labels
        self.names = {int(partition.pkey): partition.name for partition in wanted.partitions} | {
            _DEFAULT_KEY: "Default"
        }
        self.master_lid = after.masters[0].lid if len(after.masters) == 1 else None
        self.found: list[Discrepancy] = []
        self.drifted: list[GUID] = []
        self.moved: dict[GUID, tuple[int, str]] = {}
        self.leaf_copies_skipped = 0
        self.indexes_skipped = 0
        self.without_before = 0

    def run(self) -> ReadBack:
        verdicts: dict[GUID, Verdict] = {}
        proven: set[GUID] = set()
        changed: set[GUID] = set()
        for guid in sorted(self.before.ports.keys() | self.after.ports.keys()):
            count = len(self.found)
            verdict = self._verdict(guid)
            if verdict == Verdict.PROVEN:
                proven.add(guid)
            known = self.after.ports.get(guid) or self.before.ports[guid]
            if known.node_type == "CA":
                verdicts[guid] = verdict
                if any(discrepancy.kind in _CHANGES for discrepancy in self.found[count:]):
                    changed.add(guid)
        return ReadBack(
            verdicts=verdicts,
            discrepancies=(*self._isolation_lost(), *self.found),
            owed=tuple(sorted(self.affected - proven)),
            drifted=tuple(self.drifted),
            not_checked=tuple(self._not_checked()),
            unaffected_ports_changed=len(changed),
            moved=self.moved,
        )

    def _entries(self, port: PortReading) -> dict[int, int]:
        return _entries(self.wanted, port, is_self=port.guid in self.masters)

    def _verdict(self, guid: GUID) -> Verdict:
        """Judge one port and report what differs."""
        now, was = self.after.ports.get(guid), self.before.ports.get(guid)
        if now is None:
            return Verdict.ABSENT
        if not now.is_read:
            return Verdict.UNREADABLE
        count = len(self.found)
        self._port(was if was and was.is_read else None, now)
        return Verdict.PROVEN if len(self.found) == count else Verdict.DISCREPANT

    def _port(self, was: PortReading | None, now: PortReading) -> None:
        """Judge one port that was read after the rollout."""
        entries = self._entries(now)
        if now.guid in self.affected:
            self._keys(now, entries)
            self._indexes(was, now, entries)
            self.leaf_copies_skipped += not leaf_copies.is_comparable(now, entries)
            self._leaf(now, "leaf_copy_differs", leaf_copies.of_affected(now, entries.values()))
        elif was is None or was.state not in _ARMED:
            self.without_before += 1
            self._keys(now, entries)
        else:
            self._unaffected(was, now)
            if now.pkeys == was.pkeys and set(now.pkeys.values()) != set(entries.values()):
                self.drifted.append(now.guid)
        self._leaf(now, "enforcement_lost", leaf_copies.enforcement_lost(was, now))
        if self.master_lid is not None and now.master_sm_lid != self.master_lid:
            self._report(
                now,
                "wrong_master_lid",
                f"takes LID {now.master_sm_lid} for the master's, and the master has LID {self.master_lid}. Look for "
                "another subnet manager.",
            )

    def _keys(self, now: PortReading, entries: Mapping[int, int]) -> None:
        """Report every key that is missing, foreign, there twice, or of the wrong membership."""
        holding: dict[int, list[int]] = {}
        for index, number in now.pkeys.items():
            holding.setdefault(number & ~FULL_BIT, []).append(index)
        for key, number in entries.items():
            indexes = holding.get(key)
            if indexes is None:
                self._report(now, "missing_key", f"does not hold {self._key(number)}, which it should.")
            elif len(indexes) > 1:
                self._report(
                    now,
                    "foreign_key",
                    f"holds {self._key(number)} at {len(indexes)} indexes ({', '.join(map(str, sorted(indexes)))}).",
                )
            elif now.pkeys[indexes[0]] != number:
                self._report(
                    now,
                    "wrong_membership",
                    f"should hold {self._key(number)} and holds {entry_text(now.pkeys[indexes[0]])}.",
                )
        for key, indexes in holding.items():
            if key not in entries:
                self._report(
                    now,
                    "foreign_key",
                    f"holds {self._key(now.pkeys[indexes[0]])} at index {indexes[0]}, which it should not." + _STRANGE,
                )

    def _indexes(self, was: PortReading | None, now: PortReading, entries: Mapping[int, int]) -> None:
        """Report every key of an affected port that does not stand where it was predicted."""
        prediction = self.predictions.get(now.guid)
        if prediction is None and was is not None:
            keys = self.wanted.keys_of(now.guid, now.node_type, is_self=now.guid in self.masters)
            default = keys.pop(DEFAULT)
            prediction = predict(was.pkeys, was.capacity, keys, default)
        if prediction is None:
            self.indexes_skipped += 1
            prediction = Prediction(survivors={0: entries[_DEFAULT_KEY]})
        at = {number & ~FULL_BIT: index for index, number in now.pkeys.items()}
        for index, number in prediction.survivors.items():
            found = at.get(number & ~FULL_BIT)
            if found is not None and found != index:
                self._report(
                    now,
                    "index_moved",
                    f"holds {self._key(number)} at index {found} and not at {index} as before: live connections use "
                    "the index.",
                )
        for number, indexes in prediction.new.items():
            found = at.get(number & ~FULL_BIT)
            if found is not None and indexes and found not in indexes:
                self._report(
                    now,
                    "index_unpredicted",
                    f"holds the new {self._key(number)} at index {found}, where no plan expected it.",
                )

    def _leaf(self, now: PortReading, kind: str, what: str) -> None:
        """Report what is wrong with the leaf switch's part, if anything is."""
        if what:
            self._report(now, kind, what)

    def _unaffected(self, was: PortReading, now: PortReading) -> None:
        """Report whatever moved at a port that the rollout should not touch."""
        if now.pkeys != was.pkeys:
            self._report(
                now,
                "unaffected_keys_changed",
                f"was not to change and held {_by_index(was.pkeys)}; now it holds {_by_index(now.pkeys)}.",
            )
        self._leaf(now, "leaf_copy_differs", leaf_copies.of_unaffected(was, now))
        if now.lid != was.lid or now.state != was.state:
            self.moved[now.guid] = (now.lid, now.state)
        if now.lid != was.lid:
            self._report(now, "unaffected_lid_changed", f"was not to change and had LID {was.lid}.")
        if now.state != was.state:
            self._report(
                now, "unaffected_state_changed", f"was not to change and was {was.state}; now it is {now.state}."
            )

    def _isolation_lost(self) -> Iterator[Discrepancy]:
        """OpenSM's fallback, told once before the single ports."""
        ports = [port for port in self.after.end_ports.values() if port.is_read]
        if not ports or any(port.pkeys != _FALLBACK for port in ports):
            return
        if all(set(self._entries(port).values()) == {0xFFFF} for port in ports):
            return
        yield Discrepancy(
            None,
            "isolation_lost",
            f"All {len(ports)} HCA ports that were read are full members of Default and hold no other key: OpenSM "
            "rejects its file or finds none, or another subnet manager has taken over, and every port can reach "
            "every other. Put the last proven file back and reload; if an unregistered manager is master, stop it.",
            is_contrary=True,
        )

    def _not_checked(self) -> Iterator[str]:
        yield "Routing, multicast groups and traffic were not checked: only P_Key tables, LIDs, states and the master."
        if self.leaf_copies_skipped:
            yield (
                f"The leaf switches' copies for {self.leaf_copies_skipped} affected ports were not compared: the "
                "switch does not enforce there, or its copy was not read or has no room."
            )
        if self.indexes_skipped:
            yield (
                f"The indexes of {self.indexes_skipped} affected ports were not compared, except Default's: there is "
                "no reading from before."
            )
        if self.without_before:
            yield (
                f"{self.without_before} unaffected ports were compared with the revision only: there is no reading "
                "from before, or the port was not yet armed by then."
            )
        if self.master_lid is None:
            yield "Which master each port follows was not checked: there is not exactly one master."

    def _report(self, now: PortReading, kind: str, what: str) -> None:
        """Keep a discrepancy of one port.

        Keys and indexes speak against the revision, but only once the SM has armed the port: until then, as after a
        reboot, it holds the hardware's keys. A LID, a state or a master that changed is no reason to restore.
        """
        label = self.labels.get(now.guid)
        of = f" of {label}" if label else ""
        sentence = f"Port {now.guid}{of} (LID {now.lid}{where(now)}) {what}"
        is_contrary = kind not in _NEVER_CONTRARY and now.state in _ARMED
        self.found.append(Discrepancy(now.guid, kind, sentence, is_contrary))

    def _key(self, number: int) -> str:
        """“0x8010 (full member of training)”."""
        membership = Membership.FULL if number & FULL_BIT else Membership.LIMITED
        name = self.names.get(number & ~FULL_BIT)
        return f"{entry_text(number)} ({membership} member of {name})" if name else entry_text(number)


_NEVER_CONTRARY = {"unaffected_lid_changed", "unaffected_state_changed", "wrong_master_lid"}
# States of a port whose keys the SM has set: it does so before it arms the link (osm_state_mgr.c:do_sweep).
_ARMED = {"ARMED", "ACTIVE"}
# Kinds that only an unaffected port can have.
_CHANGES = {"unaffected_keys_changed", "unaffected_lid_changed", "unaffected_state_changed"}


def _by_index(table: Mapping[int, int]) -> str:
    return ", ".join(f"{entry_text(number)} at {index}" for index, number in sorted(table.items())) or "nothing"

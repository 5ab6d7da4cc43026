"""The four lamps of a card, a port or a partition: desired, placed, proven, probed.

Which of them disagree is said in words, without a click.

Pure: no Django, no clock but the one that is handed in. *Unknown* is never drawn as good: what nobody has read, or
read too long ago, has a lamp of its own.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

FILES_LAST: Final = timedelta(minutes=15)  # the watch reads them every 30 s
TABLES_LAST: Final = timedelta(days=1)  # the rolling scan goes round in hours on the largest fabric


class Glow(StrEnum):
    """How one lamp is drawn: the classes of static/board.css, each with a colour and a shape of its own."""

    GOOD = "good"  # a tick
    HALF = "half"  # half lit: the weaker of two checks says so
    PART = "part"  # half lit, amber: true in part
    BAD = "bad"  # a triangle
    AHEAD = "ahead"  # a dashed ring: not yet, and rightly so
    NONE = "none"  # a question mark: nobody knows
    STAGED = "staged"  # an arrow


@dataclass(frozen=True, slots=True)
class Lit:
    """One lamp: how it glows, and what it says."""

    glow: Glow
    word: str


@dataclass(frozen=True, slots=True)
class Four:
    """The lamps of one card, in the order in which a change comes true."""

    desired: Lit
    placed: Lit
    proven: Lit
    probed: Lit

    @property
    def css(self) -> str:
        """The classes that draw them."""
        lamps = (self.desired, self.placed, self.proven, self.probed)
        return " ".join(f"{letter}-{lamp.glow}" for letter, lamp in zip("dprb", lamps, strict=True))

    @property
    def words(self) -> str:
        """All four in a sentence each, for a screen reader and on hover."""
        return (
            f"Desired: {self.desired.word}. Placed: {self.placed.word}. "
            f"Proven: {self.proven.word}. Probed: {self.probed.word}."
        )

    @property
    def trouble(self) -> Lit | None:
        """What disagrees with the rest, the gravest first; None when nothing does. A staged change says so itself."""
        facts = (self.proven, self.placed, self.probed)
        for glow in (Glow.BAD, Glow.PART):
            for lamp in facts:
                if lamp.glow is glow:
                    return lamp
        return None

    @property
    def state(self) -> str:
        """The one of the four states that the bar of a column counts: staged, bad, good, or unknown."""
        if self.trouble is not None:
            return "bad"
        if self.desired.glow is Glow.STAGED:
            return "staged"
        known = self.placed.glow is Glow.GOOD and self.proven.glow is Glow.GOOD
        return "good" if known else "unknown"


@dataclass(frozen=True, slots=True)
class HostFile:
    """What lies in one manager host's partition file: the current revision, something else, or nobody knows."""

    host: str
    is_current: bool | None


@dataclass(frozen=True, slots=True)
class Tried:
    """How the probes of one server went, counted: transfers, and checks that others cannot be reached."""

    bad: int = 0
    warn: int = 0
    good: int = 0  # where data moved, or was seen to be dropped
    control: int = 0  # where only the subnet manager was asked


@dataclass(frozen=True, slots=True)
class Fabric:
    """What is known of a subnet beside its rows. `wrong` and `owed` are row ids of servers, or GUIDs of ports."""

    files: tuple[HostFile, ...] = ()
    files_at: datetime | None = None
    proven_at: datetime | None = None  # since when nothing that was read contradicts the current revision
    isolation: Lit | None = None  # what is to be said of every port while the fabric is, or seems, open
    wrong: frozenset[int] = frozenset()
    owed: frozenset[int] = frozenset()
    wrong_ports: frozenset[str] = frozenset()
    owed_ports: frozenset[str] = frozenset()
    tests: Mapping[tuple[int, int | None], Tried] = field(default_factory=dict)  # (server, partition or None)

    def card(
        self, *, server: int, partition: int | None, staged: str, joins: bool, now: datetime, down: int = 0
    ) -> Four:
        """The lamps of a server in a column. `staged` says what is wanted; `joins` that it is not there yet.

        `down` ports of it have no link: what those hold, nobody can read.
        """
        desired = Lit(Glow.STAGED, staged) if staged else Lit(Glow.GOOD, "as it is")
        if joins:
            return Four(desired, Lit(Glow.AHEAD, "not yet"), Lit(Glow.AHEAD, "not yet"), Lit(Glow.AHEAD, "not yet"))
        proven = self.proven(server, now)
        if down and proven.glow is Glow.GOOD:
            proven = Lit(Glow.NONE, f"{down} port{'' if down == 1 else 's'} down, which nobody can read")
        return Four(desired, self.placed(now), proven, self.probed(server, partition))

    def port(
        self,
        *,
        guid: str,
        server: int,
        partitions: Collection[int],
        staged: str,
        joins: bool,
        now: datetime,
        is_there: bool = True,
    ) -> Four:
        """The lamps of one port. Probes are of servers: its lamp is that of its server in `partitions`, if any.

        Of a port that was not there when the fabric was read last, nobody knows what it holds.
        """
        desired = Lit(Glow.STAGED, staged) if staged else Lit(Glow.GOOD, "as it is")
        if joins:
            return Four(desired, Lit(Glow.AHEAD, "not yet"), Lit(Glow.AHEAD, "not yet"), Lit(Glow.AHEAD, "not yet"))
        proven = self._proven(guid in self.wrong_ports, guid in self.owed_ports, now)
        if not is_there and proven.glow is Glow.GOOD:
            proven = Lit(Glow.NONE, "not on the fabric when it was read")
        return Four(desired, self.placed(now), proven, self.probed(server, *partitions))

    def placed(self, now: datetime) -> Lit:
        """Whether every manager host holds the current revision."""
        if self.files_at is None or not self.files:
            return Lit(Glow.NONE, "the files were not read yet")
        if now - self.files_at > FILES_LAST:
            return Lit(Glow.NONE, "the files were not read lately")
        other = [file.host for file in self.files if file.is_current is False]
        unread = [file.host for file in self.files if file.is_current is None]
        if other:
            return Lit(Glow.BAD, f"another file on {', '.join(other)}")
        if len(unread) == len(self.files):
            return Lit(Glow.NONE, "no host could be read")
        if unread:
            return Lit(Glow.PART, f"not known on {', '.join(unread)}")
        count = len(self.files)
        return Lit(Glow.GOOD, "on both hosts" if count == 2 else f"on {count} host{'' if count == 1 else 's'}")

    def proven(self, server: int, now: datetime) -> Lit:
        """Whether the server's ports were read from the fabric and hold what they should."""
        return self._proven(server in self.wrong, server in self.owed, now)

    def _proven(self, is_wrong: bool, is_owed: bool, now: datetime) -> Lit:
        if self.isolation is not None:
            return self.isolation
        if is_wrong:
            return Lit(Glow.BAD, "other keys on the fabric")
        if is_owed:
            return Lit(Glow.PART, "a port could not be read")
        if self.proven_at is None:
            return Lit(Glow.NONE, "the fabric was not read yet")
        if now - self.proven_at > TABLES_LAST:
            return Lit(Glow.NONE, "the fabric was not read lately")
        return Lit(Glow.GOOD, "read from the fabric")

    def probed(self, server: int, *partitions: int | None) -> Lit:
        """How its probes in these partitions went. Where only the control plane can be asked, the lamp is half lit."""
        asked = dict.fromkeys((*partitions, None))
        found = [tests for partition in asked if (tests := self.tests.get((server, partition))) is not None]
        if any(tests.bad for tests in found):
            return Lit(Glow.BAD, "a probe failed")
        if any(tests.warn for tests in found):
            return Lit(Glow.PART, "a probe is worse than usual")
        if any(tests.good for tests in found):
            return Lit(Glow.GOOD, "by moving data")
        if any(tests.control for tests in found):
            return Lit(Glow.HALF, "control plane only")
        return Lit(Glow.NONE, "not probed")


def waiting(people: Collection[str]) -> str:
    """What the first lamp says of staged changes; empty when nobody has any."""
    return f"a change of {', '.join(sorted(people))} waits" if people else ""


# The gravest first: one that is bad, or that nobody knows, is never hidden by many that are good.
_GRAVEST: Final = (Glow.BAD, Glow.PART, Glow.STAGED, Glow.NONE, Glow.AHEAD, Glow.HALF, Glow.GOOD)


def together(fours: Iterable[Four]) -> Four | None:
    """The lamps of a partition: of each the gravest of its servers', and how many say so. None without servers.

    What only joins says nothing of what is there now, unless there is nothing else.
    """
    every = list(fours)
    if not every:
        return None
    there = [four for four in every if four.proven.glow is not Glow.AHEAD] or every
    return Four(
        _gravest([four.desired for four in every]),
        _gravest([four.placed for four in there]),
        _gravest([four.proven for four in there]),
        _gravest([four.probed for four in there]),
    )


def _gravest(lamps: Collection[Lit]) -> Lit:
    counts = Counter(lamps)
    gravest = min(counts, key=lambda lamp: (_GRAVEST.index(lamp.glow), -counts[lamp], lamp.word))
    count, alike = counts[gravest], counts.total()
    return gravest if count == alike else Lit(gravest.glow, f"{gravest.word}: {count} of {alike}")

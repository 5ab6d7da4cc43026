"""compare: what a server says about one of its ports beside what the fabric shows of it.

A server's word is a claim: a tenant may be root there. The fabric's is what our own reading of it found, from a
manager host. Where the fabric cannot show something the answer is “not provable here”, never “proven”. Pure: no clock.

What it proves is passive: a server that names a GUID which it never held is found as soon as one of the points
contradicts it. Somebody who is root can look a stranger's LID up and repeat it; the node description, which the port's
true owner writes, the place in the rack and a person's eye remain (docs/registration.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from subnet.guid import GUID

ABSENT = "ABSENT"  # the whole fabric was read, and the port was not there: its link is down, or it is elsewhere
_UP = "ACTIVE"


class Verdict(StrEnum):
    """How two witnesses stand to each other; for one point, and for a port."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNPROVABLE = "unprovable"  # pages say “not provable here”
    UNSEEN = "unseen"  # the fabric never showed the port
    UNREGISTERED = "unregistered"  # no server ever reported it


@dataclass(frozen=True, slots=True)
class Claim:
    """What a server says of one port. `subnet` is the prefix of the subnet that it enrolled in."""

    guid: GUID
    node_guid: GUID | None
    state: str
    lid: int | None
    sm_lid: int | None
    prefix: GUID | None
    subnet: GUID
    hostname: str
    at: float | None  # of the report, in seconds since some fixed moment


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the fabric showed of one port when it was last seen there. `names` is the server in its description."""

    node_guid: GUID | None
    state: str  # as the reader prints it, or ABSENT
    lid: int | None
    sm_lid: int | None
    leaf: tuple[GUID, int] | None
    names: str  # host name of the registered server that its node description names; empty: of none
    at: float  # in seconds since the same moment


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else bears on a port: when the whole fabric was last read, and what stood or stands near it."""

    looked_at: float | None = None
    home: tuple[GUID, int] | None = None  # leaf and port at which it was confirmed
    port_of_node: GUID | None = None  # the port whose node GUID is this port's GUID: the node GUID was pasted
    shares_place_with: GUID | None = None  # another port that was last seen at the same port of the same leaf


@dataclass(frozen=True, slots=True)
class Point:
    """One thing both can speak of, what each says (empty: nothing), and a sentence where it matters."""

    name: str
    server: str
    fabric: str
    verdict: Verdict
    sentence: str = ""

    def to_json(self) -> list[str]:
        """The point as it is stored: name, server, fabric, verdict, sentence."""
        return [self.name, self.server, self.fabric, self.verdict.value, self.sentence]

    @classmethod
    def from_json(cls, value: list[str]) -> "Point":
        """The point that `to_json` wrote."""
        name, server, fabric, verdict, sentence = value
        return cls(name, server, fabric, Verdict(verdict), sentence)


@dataclass(frozen=True, slots=True)
class Testimony:
    """Both witnesses on one port. `is_proof` only if every point agrees and the link is up."""

    verdict: Verdict
    points: tuple[Point, ...]

    @property
    def is_proof(self) -> bool:
        """Whether the passive proof stands."""
        return self.verdict is Verdict.AGREES

    @property
    def contradictions(self) -> tuple[Point, ...]:
        """The points on which they contradict each other."""
        return tuple(point for point in self.points if point.verdict is Verdict.DISAGREES)


def compare(claim: Claim | None, sighting: Sighting | None, around: Surroundings) -> Testimony:
    """Both witnesses on one port, point by point; either may be silent, not both (ValueError)."""
    if claim is None:
        if sighting is None:
            raise ValueError("Nobody speaks of the port: there is nothing to compare.")
        return Testimony(Verdict.UNREGISTERED, ())
    if sighting is None:
        points: tuple[Point, ...] = (_subnet(claim), _never_seen(claim, around))
    else:
        points = (
            _subnet(claim),
            _guid_at_lid(claim, sighting, around),
            _node(claim, sighting),
            _place(sighting, around),
            _sm(claim, sighting),
            _link(claim, sighting, around),
            *_description(claim, sighting),
        )
    return Testimony(_sum_up(points, is_seen=sighting is not None), points)


def _sum_up(points: Iterable[Point], *, is_seen: bool) -> Verdict:
    verdicts = {point.verdict for point in points}
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    if not is_seen:
        return Verdict.UNSEEN
    return Verdict.AGREES if verdicts == {Verdict.AGREES} else Verdict.UNPROVABLE


def _subnet(claim: Claim) -> Point:
    said = "" if claim.prefix is None else str(claim.prefix)
    if claim.prefix is None:
        return Point("subnet", said, str(claim.subnet), Verdict.UNPROVABLE, "The server names no subnet prefix.")
    if claim.prefix != claim.subnet:
        sentence = f"The server says the port is in subnet {claim.prefix}; this one is {claim.subnet}. Check its cable."
        return Point("subnet", said, str(claim.subnet), Verdict.DISAGREES, sentence)
    return Point("subnet", said, str(claim.subnet), Verdict.AGREES)


def _never_seen(claim: Claim, around: Surroundings) -> Point:
    name = "GUID at its LID"
    if around.port_of_node is not None:
        sentence = (
            f"{claim.guid} is a node GUID: the fabric shows that HCA with port GUID {around.port_of_node}. "
            "A node GUID was taken for a port GUID."
        )
        return Point(name, str(claim.guid), f"port {around.port_of_node}", Verdict.DISAGREES, sentence)
    if not _was_looked_at_since(claim, around):
        return Point(
            name, str(claim.guid), "", Verdict.UNPROVABLE, "The fabric was not read since the server reported."
        )
    if claim.state == _UP:
        sentence = "The server says that the link is up, and the fabric does not show such a port. Check what it names."
        return Point(name, str(claim.guid), "not there", Verdict.DISAGREES, sentence)
    sentence = "The fabric shows no port whose link is down: not provable here before the link is up."
    return Point(name, str(claim.guid), "not there", Verdict.UNPROVABLE, sentence)


def _guid_at_lid(claim: Claim, seen: Sighting, around: Surroundings) -> Point:
    name, said, shown = "GUID at its LID", _lid(claim.lid), _lid(seen.lid)
    if seen.state == ABSENT:
        return Point(name, said, f"{shown} when last seen", Verdict.UNPROVABLE, "It was not there at the last look.")
    if claim.lid is None or not seen.lid:
        who = "server" if claim.lid is None else "fabric"
        return Point(name, said, shown, Verdict.UNPROVABLE, f"The {who} names no LID for the port.")
    if claim.lid != seen.lid:
        if not _was_looked_at_since(claim, around):
            return Point(name, said, shown, Verdict.UNPROVABLE, "The fabric was not read since the server reported.")
        sentence = f"The server says LID {claim.lid}; the fabric has the port at LID {seen.lid}."
        return Point(name, said, shown, _older(claim, seen), sentence)
    return Point(name, said, shown, Verdict.AGREES)


def _node(claim: Claim, seen: Sighting) -> Point:
    said, shown = str(claim.node_guid or ""), str(seen.node_guid or "")
    if claim.node_guid is None or seen.node_guid is None:
        return Point("node GUID", said, shown, Verdict.UNPROVABLE, "One of the two names no node GUID.")
    if claim.node_guid != seen.node_guid:
        sentence = f"The server says the port is on HCA {claim.node_guid}; the fabric shows it on HCA {seen.node_guid}."
        return Point("node GUID", said, shown, Verdict.DISAGREES, sentence)
    return Point("node GUID", said, shown, Verdict.AGREES)


def _place(seen: Sighting, around: Surroundings) -> Point:
    """A server cannot say where its cable ends; what stands beside the fabric's word is where it was confirmed."""
    said = "" if around.home is None else place_text(around.home)
    if seen.leaf is None:
        return Point("leaf and port", said, "", Verdict.UNPROVABLE, "The fabric shows no switch at its cable's end.")
    shown = place_text(seen.leaf)
    if around.shares_place_with is not None:
        sentence = f"Port {around.shares_place_with} was seen at the same switch port. Look at the fabric again."
        return Point("leaf and port", said, shown, Verdict.UNPROVABLE, sentence)
    if around.home is not None and around.home != seen.leaf:
        sentence = f"It was confirmed at {said} and is at {shown} now. Confirm it there if it was re-cabled on purpose."
        return Point("leaf and port", said, shown, Verdict.DISAGREES, sentence)
    return Point("leaf and port", said, shown, Verdict.AGREES)


def _sm(claim: Claim, seen: Sighting) -> Point:
    said, shown = _lid(claim.sm_lid), _lid(seen.sm_lid)
    if not claim.sm_lid or not seen.sm_lid:
        who = "server" if not claim.sm_lid else "fabric"
        return Point("SM LID", said, shown, Verdict.UNPROVABLE, f"The {who} knows no subnet manager for the port.")
    if claim.sm_lid != seen.sm_lid:
        sentence = f"The server says its SM is at LID {claim.sm_lid}; the fabric shows LID {seen.sm_lid}."
        return Point("SM LID", said, shown, _older(claim, seen), sentence)
    return Point("SM LID", said, shown, Verdict.AGREES)


def _link(claim: Claim, seen: Sighting, around: Surroundings) -> Point:
    said, shown = claim.state, seen.state
    if seen.state == ABSENT:
        shown = "not there"
        if claim.state == _UP and _was_looked_at_since(claim, around):
            sentence = "The server says the link is up; the last look did not show the port. Check its cable."
            return Point("link state", said, shown, Verdict.DISAGREES, sentence)
        sentence = "The last look did not show the port: its link is down, or it is not cabled here."
        return Point("link state", said, shown, Verdict.UNPROVABLE, sentence)
    if not claim.state:
        return Point("link state", said, shown, Verdict.UNPROVABLE, "The server names no link state.")
    if _word(claim.state) != _word(seen.state):
        sentence = f"The server says {_word(claim.state)}; the fabric shows {_word(seen.state)}."
        return Point("link state", said, shown, _older(claim, seen), sentence)
    if _word(claim.state) != _UP:
        return Point("link state", said, shown, Verdict.UNPROVABLE, "Both say that the link is not up yet.")
    return Point("link state", said, shown, Verdict.AGREES)


def _description(claim: Claim, seen: Sighting) -> tuple[Point, ...]:
    """The true owner of a port writes its node description; nobody else can. It need not name the host at all."""
    if not seen.names:
        return ()
    if seen.names == claim.hostname:
        return (Point("node description", claim.hostname, seen.names, Verdict.AGREES),)
    sentence = f"The port calls itself a port of {seen.names}, and {claim.hostname} reports it. Look at both machines."
    return (Point("node description", claim.hostname, seen.names, Verdict.DISAGREES, sentence),)


def _older(claim: Claim, seen: Sighting) -> Verdict:
    """LID, SM LID and link state change with time: more than an hour apart, one does not contradict the other."""
    if claim.at is None or abs(claim.at - seen.at) > 3600:
        return Verdict.UNPROVABLE
    return Verdict.DISAGREES


def _was_looked_at_since(claim: Claim, around: Surroundings) -> bool:
    return around.looked_at is not None and (claim.at is None or claim.at <= around.looked_at)


def _lid(lid: int | None) -> str:
    return "" if not lid else f"LID {lid}"


def _word(state: str) -> str:
    word = state.rpartition(":")[2].strip().upper()
    return {"INITIALIZE": "INIT", "INITIALIZING": "INIT"}.get(word, word)


def place_text(place: tuple[GUID, int]) -> str:
    """A port of a leaf as people read it."""
    return f"{place[0]} port {place[1]}"

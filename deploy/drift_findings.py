"""What one look of the watch found that is not as the current revision says. Pure; every finding has its words.

A finding is believed or closed elsewhere (`deploy/drifting.py`): here is only what was seen, and what could not be.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deploy import drift_causes
from deploy.drift_models import Drift
from deploy.files import Standing
from deploy.look import HostView, Look, told
from deploy.readiness import binding
from remote.errors import FileMissing
from remote.watch_verbs import FoundSM, SMCensus
from subnet.guid import GUID
from subnet.posture import PostureCheck

Kind = Drift.Kind


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: of what (`kind`, `key`), in sentences, and what probably did it."""

    kind: Drift.Kind
    key: str
    details: tuple[str, ...]
    cause: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Seen:
    """What one look found, and of which kinds, or single things, it could say nothing: those stay as they are."""

    findings: list[Finding] = field(default_factory=list)
    blind: set[tuple[Drift.Kind, str]] = field(default_factory=set)
    judged: set[Drift.Kind] = field(default_factory=set)  # kinds that the look could judge

    def answers(self, kind: Drift.Kind, key: str) -> bool:
        """Whether the look would have seen this difference, had it been there."""
        return kind in self.judged and (kind, key) not in self.blind


def of_files(
    seen: Seen, look: Look, *, standing: Standing, accepted: Mapping[str, int], known: Mapping[str, int]
) -> None:
    """Every manager host whose file is not the one that should lie there.

    `accepted` are digests that may lie there now: the current revision's, and those of the rollout that holds the
    subnet. `known` are all revisions' (digest → number).
    """
    seen.judged.add(Kind.FILE)
    digests = [view.digest for view in look.views if view.file is not None]
    for view in look.views:
        is_missing = file_is_missing(view)
        if view.file is None and not is_missing:
            seen.blind.add((Kind.FILE, view.name))
            continue
        if view.digest in accepted:
            continue
        role = view.role
        what = (
            "its partition file is missing"
            if is_missing
            else f"its partition file is revision {known[view.digest]}"
            if view.digest in known
            else "its partition file is no revision of FabricUI"
        )
        sentence = f"Manager host {view.name} ({_role(role)}): {what}; revision {standing.number} is current."
        details = (sentence, _danger(role, is_missing=is_missing))
        facts = {
            "host": view.name,
            "digest": view.digest,
            "role": role,
            "revision": known.get(view.digest),
            "missing": is_missing,
        }
        cause = drift_causes.of_file(
            view.file, standing=standing, revision=known.get(view.digest), alike=digests.count(view.digest)
        )
        seen.findings.append(Finding(Kind.FILE, view.name, details, cause, facts))


def of_hosts(seen: Seen, look: Look) -> None:
    """What is wrong with the hosts themselves: unreachable, no OpenSM, another file or port than registered."""
    seen.judged.add(Kind.HOST)
    for view in look.views:
        failures = tuple(failure for failure in view.failures if not isinstance(failure, FileMissing))
        sentences = tuple(binding(replace(view, failures=failures)))
        if sentences:
            seen.findings.append(
                Finding(Kind.HOST, view.name, sentences, drift_causes.of_host(view), {"host": view.name})
            )


def of_sms(
    seen: Seen,
    look: Look,
    census: SMCensus | None,
    *,
    registered: Mapping[str, GUID],
    before: Sequence[Mapping[str, Any]],
) -> None:
    """Unregistered SMs, and registered ones that are not as they should be.

    A host's port that follows a master which is none of ours tells of it even when the census cannot be taken.
    `before` are the rows of the last census: they still know where a port is plugged that cannot be asked now.
    """
    names = {guid: name for name, guid in registered.items()}
    strangers: dict[str, FoundSM | None] = {}
    for view in look.views:
        if view.sm is not None and view.sm.master_guid and view.sm.master_guid not in names:
            strangers[view.sm.master_guid] = None
    if census is not None:
        seen.judged |= {Kind.ROGUE_SM, Kind.ROLES}
        strangers |= {sm.guid: sm for sm in census.sms if sm.guid not in names}
    places = {row["guid"]: row for row in before}
    for guid, sm in sorted(strangers.items()):
        seen.findings.append(_rogue(guid, sm, places.get(guid, {})))
    if census is not None and not strangers:
        seen.findings += _roles(look, census, names)
    elif strangers:  # everything else about roles follows from the stranger
        seen.judged.discard(Kind.ROLES)


def _rogue(guid: str, sm: FoundSM | None, known: Mapping[str, Any]) -> Finding:
    leaf = sm.leaf if sm is not None and sm.leaf else known.get("leaf") or ""
    leaf_port = sm.leaf_port if sm is not None and sm.leaf else known.get("leaf_port") or 0
    state = "MASTER" if sm is None else sm.state
    if sm is not None and not sm.state:
        doing = "says that it runs a subnet manager, and that does not answer"
    elif sm is None:
        doing = "is the master that our managers' ports follow"
    else:
        doing = f"runs a subnet manager ({sm.state}, priority {sm.priority})"
    details = [
        f"Port {guid} at leaf {leaf} port {leaf_port} {doing}, and is no registered manager host."
        if leaf
        else f"Port {guid} {doing}, and is no registered manager host."
    ]
    if state == "MASTER":
        details.append(
            "It is master: it writes every port's P_Key table by its own file, or by none. Restoring our files does "
            "not help until it is stopped."
        )
    else:
        details.append("It becomes master when the others stop, or when its priority is higher, with its own file.")
    facts = {
        "guid": guid,
        "leaf": leaf,
        "leaf_port": leaf_port,
        "state": state,
        "priority": None if sm is None else sm.priority,
    }
    return Finding(Kind.ROGUE_SM, guid, tuple(details), drift_causes.ROGUE, facts)


def _roles(look: Look, census: SMCensus, names: Mapping[GUID, str]) -> Iterator[Finding]:
    """No master, two masters, no standby, ports that follow another LID than the master's."""
    masters = [sm for sm in census.sms if sm.state == "MASTER"]
    if not masters:
        yield Finding(
            Kind.ROLES,
            "no master",
            ("No subnet manager is master: nothing new joins the fabric, and nothing can be proven.",),
            drift_causes.no_master(look),
        )
    elif len(masters) > 1:
        listed = " and ".join(f"{names[sm.guid]} (priority {sm.priority})" for sm in masters)
        yield Finding(
            Kind.ROLES,
            "two masters",
            (f"{listed} are both master: each writes the tables by its own file.",),
            "Their sm_key differs, or the fabric is cut in two. See the posture below.",
        )
    if not any(sm.state == "STANDBY" for sm in census.sms):
        yield Finding(
            Kind.ROLES,
            "no standby",
            ("No registered subnet manager is standby: when the master stops, nothing takes over.",),
            drift_causes.no_standby(look),
        )
    if len(masters) == 1:
        lost = {lid: ports for lid, ports in census.follows.items() if lid != masters[0].lid}
        if lost:
            count = sum(ports for ports, _ in lost.values())
            lid, (_, first) = next(iter(sorted(lost.items())))
            yield Finding(
                Kind.ROLES,
                "misled",
                (
                    f"{count} ports take another LID for the master's, as port {first} does (LID {lid}); the master "
                    f"is {names[masters[0].guid]} at LID {masters[0].lid}.",
                ),
                "Another subnet manager hides (a host can hide that it runs one), or a sweep is late.",
            )


def of_posture(seen: Seen, checks: Collection[PostureCheck]) -> None:
    """Every option on which the managers differ, or that FabricUI's plans cannot live with."""
    seen.judged.add(Kind.OPTION)
    for check in checks:
        if check.answer == "no":
            seen.findings.append(
                Finding(
                    Kind.OPTION,
                    check.name,
                    (check.sentence,),
                    "Somebody changed opensm.conf or the start of OpenSM on one manager host, or it was installed "
                    "otherwise from the beginning.",
                    {"values": dict(check.values)},
                )
            )
        elif check.answer == "unknown":
            seen.blind.add((Kind.OPTION, check.name))


def file_is_missing(view: HostView) -> bool:
    """Whether the host says that no partition file lies there."""
    return any(isinstance(failure, FileMissing) for failure in view.failures)


def _role(role: str) -> str:
    return role.lower() if role else "not answering"


def _danger(role: str, *, is_missing: bool) -> str:
    """What a wrong file means there: the master reads it at its next sweep, the standby when it takes over."""
    so = "then every port becomes a full member of Default and loses all else" if is_missing else "as it stands"
    if role == "MASTER":
        return f"OpenSM reads it at its next heavy sweep, which any cable can cause, {so}."
    return f"OpenSM does not read it before it takes over; then it becomes the fabric's truth, {so}."


def failures(look: Look) -> str:
    """Why less was seen than should be, in a sentence a host; "" when everything answered."""
    return " ".join(
        told(view.name, failure)
        for view in look.views
        for failure in view.failures[:1]
        if not isinstance(failure, FileMissing)
    )

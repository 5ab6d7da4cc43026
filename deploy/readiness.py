"""May files be placed? A pure judgement over one look at the manager hosts; every answer is a sentence for a person.

Whatever is wrong here ends a rollout as REFUSED, before anything was placed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from deploy.files import Standing
from deploy.look import HostView, Look, told
from subnet.errors import InvalidFile
from subnet.guid import GUID
from subnet.partitions_conf import parse_strict

MOST_SENTENCES: Final = 4

type Place = Callable[[str], str]  # port GUID → “ at leaf 0x… port 5”, or ""


def unready(
    look: Look,
    *,
    accepted: Mapping[str, int],
    known: Mapping[str, int],
    parent: Standing,
    sm_ports: Collection[GUID],
    place: Place,
    generation: int,
    without: Collection[str] = (),
) -> str:
    """Why nothing may be placed, in sentences; "" when every manager host is as it must be.

    `accepted` are the digests a file may have now, `known` those of all revisions (digest → number); `parent` is what
    should lie on every host now; `sm_ports` are the ports that the new table makes full members of Default;
    `generation` is what the files would be placed under. Whatever keeps the standbys `without` from being staged is
    no reason: a person lets the rollout go without them.
    """
    found = list(
        _troubles(
            look,
            accepted=accepted,
            known=known,
            parent=parent,
            sm_ports=sm_ports,
            place=place,
            generation=generation,
            without=without,
        )
    )
    more = len(found) - MOST_SENTENCES
    return " ".join(found[:MOST_SENTENCES]) + (f" (and {more} more)" if more > 0 else "")


def _troubles(
    look: Look,
    *,
    accepted: Mapping[str, int],
    known: Mapping[str, int],
    parent: Standing,
    sm_ports: Collection[GUID],
    place: Place,
    generation: int,
    without: Collection[str],
) -> Iterator[str]:
    for view in look.views:
        if view.identity is not None and view.identity.generation >= generation:
            yield overtaken(view.name, f"has seen fencing generation {view.identity.generation}, and this rollout is "
                            f"{generation}")  # fmt: skip
            continue  # its file follows from that
        if view.registered not in sm_ports:
            yield (
                f"Manager host {view.name}: its SM port {view.registered} is no full member of Default in this "
                "revision; the host was enrolled later. Draw up the plan again."
            )
        if not may_lack(view, without):
            yield from binding(view)
        yield from _file(view, accepted=accepted, known=known, parent=parent)
    if not [view for view in look.views if view.failures and not may_lack(view, without)]:
        yield from _census(look, place=place, without=without)


def may_lack(view: HostView, without: Collection[str]) -> bool:
    """Whether a person lets the rollout go without this host: one of the standbys named, and not master now."""
    return view.name in without and view.role != "MASTER"


def overtaken(name: str, what: str) -> str:
    """The sentence for a host on which a newer generation than ours has placed a file; `what` it has seen."""
    return (
        f"Manager host {name}: it {what}. This database was restored from an older copy, or another FabricUI places "
        "files there. Restore the newest copy of the database; if there is none, do what docs/operating.md says under "
        "“The database is older than the manager hosts”."
    )


def binding(view: HostView) -> Iterator[str]:
    """What is wrong with the host itself and with the OpenSM that runs on it."""
    if view.failures:
        yield view.failure
        return
    identity, sm = view.identity, view.sm
    if identity is None or sm is None:
        return
    if identity.problems:
        yield " ".join(told(view.name, problem) for problem in identity.problems)
    elif identity.process is None:
        yield (
            f"Manager host {view.name}: no OpenSM runs for port {view.registered}. Start it there, and wait until it "
            "is master or standby."
        )
    elif identity.process.port_guid != view.registered:
        yield (
            f"Manager host {view.name}: its OpenSM is bound to port {identity.process.port_guid}, registered is "
            f"{view.registered}. Start OpenSM with the registered port."
        )
    elif identity.process.partition_file not in ("", identity.partition_file):
        yield (
            f"Manager host {view.name}: OpenSM (process {identity.process.pid}) runs with -P "
            f"{identity.process.partition_file}, registered is {identity.partition_file}. Start OpenSM with the "
            "registered file."
        )
    elif identity.sharing:
        yield (
            f"Manager host {view.name}: another OpenSM shares its files: {' '.join(identity.sharing)} Give each "
            "OpenSM its own partition file, dump and cache folder."
        )
    if sm.port_guid != view.registered:
        yield (
            f"Manager host {view.name}: the SM that answers there has port {sm.port_guid}, registered is "
            f"{view.registered}. Look which OpenSM runs there."
        )


def _file(view: HostView, *, accepted: Mapping[str, int], known: Mapping[str, int], parent: Standing) -> Iterator[str]:
    if view.file is None or view.digest in accepted:
        return
    yield foreign_file(view, known=known, wanted=parent)


def foreign_file(view: HostView, *, known: Mapping[str, int], wanted: Standing) -> str:
    """The sentence for a file that is not the one that should lie there."""
    if view.digest in known:
        return (
            f"Manager host {view.name}: its partition file is revision {known[view.digest]}, and revision "
            f"{wanted.number} is current. Put {wanted.words} back on that host, then try again."
        )
    if wanted.is_adopted:
        return (
            f"Manager host {view.name}: its partition file (SHA-256 {view.digest[:12]}…) is not {wanted.words}; "
            "somebody changed it since. Find out who and why; put the adopted file back, or take a new look and adopt "
            "what lies there now."
        )
    try:
        parse_strict(view.file or b"")
        what = f"SHA-256 {view.digest[:12]}…"
    except InvalidFile as error:
        what = str(error)
    return (
        f"Manager host {view.name}: its partition file is no revision of FabricUI ({what}); somebody changed it by "
        f"hand. Find out who and why, put {wanted.words} back on that host, then try again."
    )


def foreign_master(look: Look, *, place: Place) -> str:
    """The sentence for a master that is no registered manager host, if some host's port follows one; else ""."""
    registered = {view.registered for view in look.views}
    for view in look.views:
        sm = view.sm
        if sm is not None and sm.master_guid and sm.master_guid not in registered:
            return (
                f"The port of manager host {view.name} follows a master at port {sm.master_guid}"
                f"{place(sm.master_guid)} (LID {sm.master_lid}), which is no registered manager host. Stop OpenSM on "
                "that host or take its port down at the leaf switch; restoring files does not help."
            )
    return ""


def no_master(look: Look, *, place: Place = lambda guid: "") -> str:
    """The sentence for a look in which no registered SM, or more than one, is master."""
    if len(look.masters) > 1:
        names = " and ".join(f"{view.name} (port {view.registered}{place(view.registered)})" for view in look.masters)
        return (
            f"The SMs of {names} both say they are master. Check the links between them and that both use the same "
            "sm_key; go on once one of them is standby."
        )
    roles = ", ".join(
        f"{view.name} says {view.role}" if view.role else f"{view.name} says nothing" for view in look.views
    )
    failures = "".join(f" {sentence}" for sentence in look.failures)
    return (
        f"No registered SM is master ({roles}). Wait for the takeover, or look at OpenSM on the manager hosts."
        f"{failures}"
    )


def _census(look: Look, *, place: Place, without: Collection[str]) -> Iterator[str]:
    foreign = foreign_master(look, place=place)
    if foreign:
        yield foreign  # everything else follows from it
    elif look.master is None:
        yield no_master(look, place=place)
    else:
        others = [view for view in look.others if not may_lack(view, without)]
        standbys = [view for view in look.others if view.role == "STANDBY"]
        if not standbys and (others or not look.others):
            yield (
                "No registered SM is standby, so a takeover could bring nothing proven. Enrol a second manager host, "
                "or start OpenSM on it and wait until it is standby."
            )
        for view in others:
            if view.role not in ("", "STANDBY"):
                yield f"Manager host {view.name}: its SM is {view.role}. Wait until it is standby, then try again."

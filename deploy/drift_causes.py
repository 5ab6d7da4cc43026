"""What probably did it: guesses from what was seen, each with the next step. Pure, and never more than a guess."""

from typing import Final

from deploy.files import Standing
from deploy.look import HostView, Look
from subnet.opensm_reading import check

ROGUE: Final = (
    "Debian starts OpenSM on every port of any host that installs the package (PORTS=ALL), and anybody with root on a "
    "server can. Stop it there (systemctl stop 'opensm*'), or take its port down at the leaf switch; if it is meant, "
    "enrol it as a manager host. It is over by itself once it is gone."
)


def of_file(data: bytes | None, *, standing: Standing, revision: int | None, alike: int) -> str:
    """Who may have changed the file; `alike` counts the hosts that hold the very same bytes."""
    return f"{_who(data, standing=standing, revision=revision)}{_everywhere(alike)}"


def _who(data: bytes | None, *, standing: Standing, revision: int | None) -> str:
    if data is None:
        return "Somebody removed it, or the disk it lies on is not mounted."
    if revision is not None:
        return (
            f"An older file was copied back, by a person, a backup or configuration management; or this host was away "
            f"while revision {standing.number} was rolled out."
        )
    if not data.strip():
        return "It was cut to nothing: a copy that broke off, or a full disk."
    if b"\r" in data:
        return "It was saved with Windows line ends (CR LF)."
    if data.startswith(standing.data[:4096].split(b"\n", 1)[0]):
        return f"Somebody edited revision {standing.number}'s file by hand: its first line is still ours."
    if data.startswith(b"# FabricUI"):
        return "Somebody edited an older file of FabricUI's by hand and put it there."
    if standing.data.startswith(data):
        return "It was cut short: a copy that broke off, or a full disk."
    return "Somebody wrote another file there: by hand, by a script, or by configuration management."


def _everywhere(alike: int) -> str:
    return f" {alike} hosts hold the same bytes, so look at what writes to all of them." if alike > 1 else ""


def of_host(view: HostView) -> str:
    """Why a host does not do what it is registered for."""
    if view.identity is None:
        return "The machine, its network or its sshd is down, or its host key changed. See what it says."
    if view.identity.process is None:
        return "OpenSM was stopped there, or ended by itself; its log says which. systemctl status 'opensm@*'."
    return "Somebody started OpenSM otherwise than it was enrolled, or changed its files."


def no_master(look: Look) -> str:
    """Why nobody is master."""
    silent = _silent(look)
    return f"OpenSM does not answer on {silent}; a takeover may be under way." if silent else "A takeover is under way."


def no_standby(look: Look) -> str:
    """Why nobody stands by."""
    silent = _silent(look)
    return f"OpenSM does not answer on {silent}. Start it there." if silent else "OpenSM starts there just now."


def of_takeover(look: Look, former: str) -> str:
    """Why another host is master now; `former` is the one that was."""
    view = next((view for view in look.views if view.name == former), None)
    if view is None:
        return "The former master is registered no more."
    if view.identity is None:
        return f"Manager host {former} does not answer: it or its network is down."
    if view.identity.process is None:
        return f"OpenSM on {former} stopped or was killed."
    return (
        f"OpenSM on {former} runs as {view.role.lower() or 'silent'}: it was started again or lost its link, or a "
        "priority was changed."
    )


def of_isolation(look: Look, *, wanted: str, rogue: str, wanted_number: int) -> str:
    """Why every port is a full member of Default; `wanted` is the current revision's digest, `rogue` a master GUID."""
    if rogue:
        return f"The subnet manager at port {rogue} took the fabric over and knows no partitions. Stop it."
    master = look.master
    if master is None:
        return "No registered manager is master; look at who is."
    if master.file is None:
        return f"The partition file on {master.name} is missing or cannot be read: OpenSM then opens the fabric."
    if master.digest != wanted:
        rejection = check(master.file).rejection
        if rejection is not None:
            at = f" (line {rejection.line})" if rejection.line is not None else ""
            return (
                f"OpenSM on {master.name} rejects its partition file{at}: {rejection.message}. It then makes every "
                "port a full member of Default. Put the current revision back."
            )
        return f"The partition file on {master.name} is not revision {wanted_number}, and says so itself. Put it back."
    return (
        f"The file on {master.name} is revision {wanted_number}, so OpenSM reads another one (-P), or could not read "
        "this one when it swept. Put the revision back: that makes it sweep again."
    )


def of_tables(look: Look, *, wanted: str) -> str:
    """Why ports hold other keys than the current revision says."""
    master = look.master
    if master is not None and master.file is not None and master.digest != wanted:
        return f"OpenSM on {master.name} has read the file that lies there, which is not the current revision."
    return (
        "The files are right. Somebody wrote these tables behind OpenSM's back, which OpenSM does not mend; or OpenSM "
        "could not set them (ERR 3111, 3113, 0512 in its log). Take the port's link down and up to have it set anew; "
        "putting the revision back only makes OpenSM sweep."
    )


def _silent(look: Look) -> str:
    return " and ".join(view.name for view in look.views if view.identity is None or view.identity.process is None)

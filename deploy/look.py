"""One look at every manager host at once: what runs there, which SM state it has, which bytes lie in its file.

Gathering never raises for a host that cannot be asked: the answer, or the failure, stands in its view. Whether what
was seen is good enough to place files is decided in `deploy/readiness.py`, which reaches nothing.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from remote.errors import AccessRefused, CallTimedOut, HostKeyMismatch, RemoteError, Unreachable, WrapperMismatch
from remote.manager_host import HostVerbs, Identity, SMState
from subnet.guid import GUID

# After one of these there is nobody, or nobody we trust, to ask the next question.
NOBODY_TO_ASK = (Unreachable, CallTimedOut, HostKeyMismatch, AccessRefused, WrapperMismatch)


def told(name: str, what: object) -> str:
    """`what` happened as a sentence that names the manager host once."""
    text = str(what)
    return text if text.startswith(f"Manager host {name}:") else f"Manager host {name}: {text}"


@dataclass(frozen=True, slots=True)
class HostView:
    """What one manager host answered. None means it did not; the reason stands in `failures`."""

    host: HostVerbs
    registered: GUID  # the port its OpenSM is registered with
    identity: Identity | None = None
    sm: SMState | None = None
    file: bytes | None = field(default=None, repr=False)
    failures: tuple[RemoteError, ...] = ()
    seen_as: str = ""  # the state of its SM as the table reader saw it from the fabric

    @property
    def name(self) -> str:
        """The manager host's name."""
        return self.host.name

    @property
    def role(self) -> str:
        """The state of its SM as sminfo prints it, or "" when it did not answer."""
        return self.sm.state if self.sm is not None else self.seen_as

    @property
    def digest(self) -> str:
        """SHA-256 of its partition file, or "" when the file was not read."""
        return hashlib.sha256(self.file).hexdigest() if self.file is not None else ""

    @property
    def failure(self) -> str:
        """The first thing that went wrong there as a sentence, or ""."""
        return told(self.name, self.failures[0]) if self.failures else ""


@dataclass(frozen=True, slots=True)
class Look:
    """All manager hosts of one subnet as they were seen at one moment."""

    views: tuple[HostView, ...]

    @property
    def masters(self) -> tuple[HostView, ...]:
        """Every registered host whose SM says it is master."""
        return tuple(view for view in self.views if view.role == "MASTER")

    @property
    def master(self) -> HostView | None:
        """The one registered master; None when there is none, or more than one."""
        return self.masters[0] if len(self.masters) == 1 else None

    @property
    def others(self) -> tuple[HostView, ...]:
        """Every host but the master."""
        master = self.master
        return tuple(view for view in self.views if view is not master)

    @property
    def failures(self) -> tuple[str, ...]:
        """What went wrong, one sentence a host."""
        return tuple(view.failure for view in self.views if view.failures)


class ManagerHosts:
    """The manager hosts of one subnet as a rollout uses them: all asked at the same time, in threads.

    A call over SSH costs a host some tenths of a second however little it does, so nothing is asked in a row that
    can be asked at once; `threads` needs three workers a host.
    """

    def __init__(self, hosts: Sequence[HostVerbs], *, registered: Mapping[str, GUID], threads: Executor) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.registered = {name: registered[name] for name in self.hosts}
        self.asked = threads.map
        self.seen: Look | None = None  # the last look of this run

    def look(self, *, staging: Callable[[HostVerbs], object] | None = None) -> Look:
        """Ask each host who it is, then which state its SM has and what its file holds.

        With `staging`, that is called for each host at the same time: it puts a file beside the other and changes
        nothing that OpenSM reads, so it need not wait for the judgement. Its failure stands in the host's view.
        """
        identities = self.ask({name: host.identify for name, host in self.hosts.items()})
        calls: dict[tuple[str, str], Callable[[], object]] = {}
        for name, host in self.hosts.items():
            if not isinstance(identities[name], NOBODY_TO_ASK):
                calls |= {(name, "sm"): host.sm_state, (name, "file"): host.read}
                if staging is not None:
                    calls[name, "staging"] = partial(staging, host)
        answers = self.ask(calls)
        self.seen = Look(
            views=tuple(
                _view(
                    host,
                    self.registered[name],
                    identities[name],
                    *(answers.get((name, what)) for what in ("sm", "file", "staging")),
                )
                for name, host in self.hosts.items()
            )
        )
        return self.seen

    def second_reader(self, *, master: str) -> HostVerbs | None:
        """Another host than `master` that can be expected to answer: the first by name that did so at the last look.

        One that answered with a fault of its own comes after those without, and a dead one last. A worker that takes
        a reading up has not looked yet: it looks when there is a choice. None when there is no other host.
        """
        others = [name for name in self.hosts if name != master]
        if len(others) > 1:
            look = self.seen or self.look()
            rank = {view.name: (view.identity is None, bool(view.failures)) for view in look.views}
            others.sort(key=lambda name: rank[name])
        return self.hosts[others[0]] if others else None

    def each(self, names: Iterable[str], call: Callable[[HostVerbs], object]) -> dict[str, RemoteError]:
        """Call every named host at the same time; return who failed and how."""
        answers = self.ask({name: partial(call, self.hosts[name]) for name in names})
        return {name: answer for name, answer in answers.items() if isinstance(answer, RemoteError)}

    def ask[Key](self, calls: Mapping[Key, Callable[[], object]]) -> dict[Key, object]:
        """Make all calls at the same time; a RemoteError stands for its call's answer."""
        return dict(zip(calls, self.asked(_answer, calls.values()), strict=True))


def _answer(call: Callable[[], object]) -> object:
    try:
        return call()
    except RemoteError as error:
        return error


def _view(host: HostVerbs, registered: GUID, identity: object, sm: object, file: object, staging: object) -> HostView:
    return HostView(
        host,
        registered,
        identity=identity if isinstance(identity, Identity) else None,
        sm=sm if isinstance(sm, SMState) else None,
        file=file if isinstance(file, bytes) else None,
        failures=tuple(answer for answer in (identity, sm, file, staging) if isinstance(answer, RemoteError)),
    )

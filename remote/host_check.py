"""QualifiableHost: a manager host that can also be asked what is missing there, and how long a sweep takes.

The check runs before anything is pinned or proven, so it trusts nothing it hears and changes nothing; the measured
sweep sends SIGHUP, so a person asks for it.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

from remote.manager_host import HostVerbs, ManagerHost
from subnet.qualification import HostFacts, Piece

SWEEP_WAY_S: Final = 15.0
CHECK_S: Final = 40.0


@dataclass(frozen=True, slots=True)
class MeasuredSweep:
    """One heavy sweep by the host's own clock: from the signal until OpenSM had written its list."""

    seconds: float
    was_read_beside: bool


class QualifyVerbs(HostVerbs, Protocol):
    """What a qualification asks of a manager host beyond a rollout's verbs. Every method may raise RemoteError."""

    def check(self) -> HostFacts:
        """Say what is there and what is missing, whatever the pinned digests say. Changes nothing."""

    def sweep(self, *, smps_per_s: int, timeout_s: float) -> MeasuredSweep:
        """Make the bound OpenSM sweep (SIGHUP), beside a reader of this rate unless it is 0, and time it.

        Raises OpenSMNotRunning, OpenSMDiffers, NotMaster, BarrierTimedOut.
        """


class QualifiableHost(ManagerHost):
    """A ManagerHost with the two verbs of a qualification."""

    def check(self) -> HostFacts:
        """See QualifyVerbs."""
        values = self._values(self._call("check", timeout_s=CHECK_S))

        def text(key: str) -> str:
            return values.first(key) if values.has(key) else ""

        return HostFacts(
            account=text("account"),
            forced_command=text("forced_command"),
            wrapper_digest=text("wrapper_digest"),
            reader_digest=text("reader_digest"),
            port_guid=text("port_guid"),
            pieces=tuple(_piece(line) for line in values.all("piece")),
            opensm_version=text("opensm_version"),
            opensm_exe=text("opensm_exe"),
            opensm_unit=text("opensm_unit"),
            config_file=text("process_config_file"),
            partition_file=text("process_partition_file"),
            # A later line of a name comes from the command line, which wins ("option=lmc 0", "option=lmc 1 argv").
            options={name: value for line in values.all("option") for name, _, value in [line.partition(" ")]},
            options_digest=text("options_digest"),
            is_config_newer=text("config_changed") == "yes",
        )

    def sweep(self, *, smps_per_s: int, timeout_s: float) -> MeasuredSweep:
        """See QualifyVerbs."""
        answer = self._checked("sweep", str(smps_per_s), str(math.ceil(timeout_s)), timeout_s=timeout_s + SWEEP_WAY_S)
        values = self._values(answer)
        taken = (values.number("ended_ns") - values.number("began_ns")) / 1e9
        return MeasuredSweep(seconds=max(0.0, taken), was_read_beside=values.first("read_beside") == "yes")


def _piece(line: str) -> Piece:
    """A piece from `NAME ok|missing|unknown SENTENCE`."""
    name, _, rest = line.partition(" ")
    state, _, sentence = rest.partition(" ")
    return Piece(name, state == "ok", sentence)

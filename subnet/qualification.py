"""May FabricUI write to a subnet? What was found on its manager hosts and its fabric, judged against what was tried.

Pure: the worker gathers the facts (`deploy/qualifying.py`), and the list of OpenSM versions that were tried in the lab
is a data file that it reads. An unknown version, a foreign SM or an option that breaks a promise refuses; nothing here
is guessed to be fine.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

type Severity = Literal["refuse", "warn", "note"]

# A sweep may come out longer by this much beside our reader before the rate counts as slowing it: on a small fabric a
# sweep is tens of milliseconds, and two of them differ by more than that anyway.
TOLERATED_RATIO: Final = 1.12
TOLERATED_S: Final = 0.05

UNPACED: Final = 1_000_000  # SMPs a second that no reader reaches: what FABRICUI_READ_SMPS_PER_S=0 means

# What differs between the hosts of one subnet by right; everything else must agree (ground truth: OpenSM, 7).
OF_ONE_HOST: Final = frozenset({"sm_priority", "master_sm_priority"})
# The options whose disagreement would change the fabric at a takeover.
MUST_AGREE: Final = (
    "keep_pkey_indexes", "allow_both_pkeys", "part_enforce", "no_partition_enforcement", "sm_key", "sa_key", "m_key",
    "m_key_protection_level", "subnet_prefix", "lmc", "routing_engine", "qos", "sminfo_polling_timeout",
    "polling_retry_number", "ignore_other_sm",
)  # fmt: skip

CHECKLIST: Final[Mapping[str, str]] = {
    "qp_survival": "A queue pair that was connected before its port left a partition can send nothing more in it, "
    "tried between two servers of this site.",
    "enforcement": "A server without the P_Key cannot reach a member, also when its own HCA is told to try: the leaf "
    "switch drops the packets (PortRcvConstraintErrors rises there).",
    "link_bounce": "A port whose cable was pulled and put back holds the same P_Keys as before, at the same indexes.",
    "takeover": "With the master stopped, the standby took over and every port held the same P_Keys.",
    "hca_capacity": "The servers' HCAs take as many P_Keys as this report says; firmware profiles can lower it.",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One OpenSM version that was tried in the lab, and what was found there."""

    version: str
    package: str
    error_path: str
    index_behaviour: str
    defaults: Mapping[str, str]  # options as this version has them when nothing is told

    def to_json(self) -> dict[str, object]:
        """As plain values for a report."""
        return {"version": self.version, "package": self.package, "error_path": self.error_path,
                "index_behaviour": self.index_behaviour}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a manager host needs: there, or missing with the sentence that says how to mend it."""

    name: str
    is_there: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One manager host as its own wrapper describes it; all texts are "" where they are not known.

    `options` are those that OpenSM was told (name → value); what is not named stands at the version's default.
    """

    account: str
    forced_command: str
    wrapper_digest: str
    reader_digest: str
    port_guid: str
    pieces: tuple[Piece, ...]
    opensm_version: str = ""
    opensm_exe: str = ""
    opensm_unit: str = ""
    config_file: str = ""
    partition_file: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    options_digest: str = ""
    is_config_newer: bool = False  # the configuration file was changed after OpenSM had started

    @property
    def missing(self) -> tuple[Piece, ...]:
        """What is not there."""
        return tuple(piece for piece in self.pieces if not piece.is_there)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Seconds that heavy sweeps took: by themselves, and beside our reader by its rate in SMPs a second."""

    alone: tuple[float, ...]
    beside: Mapping[int, tuple[float, ...]]

    @property
    def rate(self) -> int | None:
        """The highest rate that did not slow the sweep; None when each did, or none was tried."""
        return max((rate for rate, seconds in self.beside.items() if self.is_harmless(rate)), default=None)

    def is_harmless(self, rate: int) -> bool:
        """Whether the median sweep beside a reader of this rate was as good as one alone."""
        alone, beside = median(self.alone), median(self.beside[rate])
        return beside <= alone * TOLERATED_RATIO or beside - alone <= TOLERATED_S


@dataclass(frozen=True, slots=True)
class FabricFacts:
    """What one full reading says: P_Key capacities of the HCA ports, enforcement at their leaves, and every SM."""

    capacities: Mapping[int, int]  # capacity → how many HCA ports have it
    ports: int
    unreadable: int
    enforced: int  # HCA ports whose leaf switch drops by P_Key in both directions
    sms: tuple[tuple[str, str, str], ...]  # (port GUID, node type, state) of every SM that answered


@dataclass(frozen=True, slots=True)
class Finding:
    """One judgement: `check` is its name, `where` a host or "" for the subnet."""

    check: str
    severity: Severity
    sentence: str
    where: str = ""

    def to_json(self) -> dict[str, str]:
        """As plain values for a report."""
        return {"check": self.check, "severity": self.severity, "sentence": self.sentence, "where": self.where}


def owner_of(facts: HostFacts) -> str:
    """Why this OpenSM is not ours to write to, in a sentence; "" for one that nobody else manages.

    NVIDIA's builds carry another parser and another partition logic than upstream; UFM writes the file by itself.
    """
    paths = (facts.opensm_exe, facts.config_file, facts.partition_file)
    if any("/ufm" in path.lower() for path in paths) or "ufm" in facts.opensm_unit.lower():
        return (
            "This OpenSM belongs to UFM, which writes the partition file by itself: FabricUI only observes. Make "
            "partitions in UFM, or take the subnet away from UFM first."
        )
    version = facts.opensm_version
    if re.match(r"[45]\.", version) or "MLNX" in version.upper() or "NVIDIA" in version.upper():
        return (
            f"OpenSM {version} is NVIDIA's, not upstream's: how it reads a bad file and where it puts a key was not "
            "tried, so FabricUI only observes. Run upstream OpenSM on the manager hosts, or keep mode observe."
        )
    return ""


def judge(
    hosts: Mapping[str, HostFacts],
    fabric: FabricFacts | None,
    sweeps: Sweeps | None,
    *,
    versions: Mapping[str, Version],
    registered: Collection[str],
    rate: int,
) -> tuple[Finding, ...]:
    """Everything that speaks against writing, and what a person should know, in order of host.

    `registered` are the manager hosts' SM port GUIDs; `rate` is FABRICUI_READ_SMPS_PER_S, which 0 leaves unpaced.
    """
    found: list[Finding] = []
    if len(hosts) < 2:
        found.append(
            Finding("managers", "refuse", "Fewer than two manager hosts are enrolled: a takeover could bring nothing "
                    "proven. Enrol the host of the master and of at least one standby.")
        )  # fmt: skip
    for name, facts in sorted(hosts.items()):
        found += _of_host(name, facts, versions)
    found += _agreement(hosts, versions)
    found += _of_fabric(fabric, registered)
    found += _of_sweeps(sweeps, rate)
    return tuple(found)


def is_fit(findings: Iterable[Finding]) -> bool:
    """Whether nothing refuses."""
    return not any(finding.severity == "refuse" for finding in findings)


def in_force(facts: HostFacts, versions: Mapping[str, Version]) -> dict[str, str]:
    """The options of this OpenSM with its version's defaults where nothing was told; {} for an unknown version."""
    known = versions.get(facts.opensm_version)
    return {**(known.defaults if known is not None else {}), **facts.options}


def _of_host(name: str, facts: HostFacts, versions: Mapping[str, Version]) -> Iterator[Finding]:
    for piece in facts.missing:
        yield Finding(piece.name, "refuse", piece.sentence, name)
    if not facts.opensm_version:
        return  # no OpenSM runs there, and the missing piece says so
    owner = owner_of(facts)
    if owner:
        yield Finding("owner", "refuse", owner, name)
    elif facts.opensm_version not in versions:
        tried = ", ".join(sorted(versions)) or "none"
        yield Finding(
            "version", "refuse",
            f"OpenSM {facts.opensm_version} was not tried in the lab (tried: {tried}), so how it treats a bad file and "
            "where it puts a key is not known. Install a version that was tried, or have this one tried "
            "(docs/manager-hosts.md).", name,
        )  # fmt: skip
    else:
        yield Finding("version", "note", f"OpenSM {facts.opensm_version} was tried in the lab.", name)
    yield from _of_options(name, in_force(facts, versions))
    if facts.is_config_newer:
        yield Finding(
            "config", "warn",
            f"{facts.config_file} was changed after OpenSM had started, and OpenSM takes some options only at its "
            "start: what is in force is not known for certain. Restart the standby first, then this one.", name,
        )  # fmt: skip


def _of_options(name: str, options: Mapping[str, str]) -> Iterator[Finding]:
    def value(option: str) -> str:
        return options.get(option, "").split(" ")[0]

    # OpenSM takes exactly TRUE for true: “yes” and “true” mean FALSE (ground truth: OpenSM, 4.3).
    if value("keep_pkey_indexes") not in ("", "TRUE"):
        yield Finding(
            "options", "refuse", f"keep_pkey_indexes is {value('keep_pkey_indexes')}: every change moves the keys that "
            "stay, under live connections. Set it to TRUE.", name,
        )  # fmt: skip
    if value("allow_both_pkeys") == "TRUE":
        yield Finding(
            "options", "refuse", "allow_both_pkeys is TRUE: index 0 stays empty, and changing a membership moves keys. "
            "Set it to FALSE and restart OpenSM.", name,
        )  # fmt: skip
    if value("ignore_other_sm") == "TRUE":
        yield Finding("options", "refuse", "ignore_other_sm is TRUE: both SMs would be master. Set it to FALSE.", name)
    if value("part_enforce") not in ("", "both") or value("no_partition_enforcement") == "TRUE":
        told = value("part_enforce") if value("no_partition_enforcement") != "TRUE" else "off"
        yield Finding(
            "options", "warn", f"part_enforce is {told}: switches let packets pass that they should drop, so isolation "
            "rests on the HCAs alone. Set it to both.", name,
        )  # fmt: skip
    if value("m_key").strip("0x") == "":
        yield Finding(
            "options", "warn", "No m_key is set: whoever is root on any server may rewrite every P_Key table. Set "
            "one with m_key_protection_level 1 or higher, and give it to the reader (install --host-env-line MKEY=…).",
            name,
        )  # fmt: skip


def _agreement(hosts: Mapping[str, HostFacts], versions: Mapping[str, Version]) -> Iterator[Finding]:
    running = {name: facts for name, facts in sorted(hosts.items()) if facts.opensm_version}
    if len({facts.opensm_version for facts in running.values()}) > 1:
        told = ", ".join(f"{name} runs {facts.opensm_version}" for name, facts in running.items())
        yield Finding("agreement", "refuse", f"The manager hosts run different versions of OpenSM ({told}): a takeover "
                      "would change how the file is read. Install the same one on all.")  # fmt: skip
        return
    options = {name: in_force(facts, versions) for name, facts in running.items()}
    for option in MUST_AGREE:
        values = {name: told.get(option, "the default") for name, told in options.items()}
        if len(set(values.values())) > 1:
            told = ", ".join(f"{value} on {name}" for name, value in values.items())
            yield Finding("agreement", "refuse", f"{option} differs between the manager hosts ({told}): a takeover "
                          "would change the fabric. Make opensm.conf the same on all.")  # fmt: skip


def _of_fabric(fabric: FabricFacts | None, registered: Collection[str]) -> Iterator[Finding]:
    if fabric is None:
        yield Finding("fabric", "refuse", "The fabric could not be read from any manager host, so its ports are not "
                      "known. Mend what is missing there, and qualify again.")  # fmt: skip
        return
    for guid, node_type, state in fabric.sms:
        if guid in registered:
            continue
        if node_type == "SW":
            yield Finding(
                "owner", "refuse", f"A switch runs a subnet manager of its own (port {guid}, {state}): it would take "
                "over with a partition table that FabricUI cannot place, so FabricUI only observes. Disable it on the "
                "switch (no ib sm, or its web page).",
            )  # fmt: skip
        else:
            yield Finding("census", "refuse", f"A subnet manager that is not registered runs on port {guid} ({state}). "
                          "Stop it, or enrol its host.")  # fmt: skip
    if fabric.ports:
        capacities = ", ".join(f"{count} with {keys}" for keys, count in sorted(fabric.capacities.items()))
        yield Finding("capacity", "note", f"P_Keys that the HCA ports hold (PartitionCap): {capacities}.")
        smallest = min(fabric.capacities, default=0)
        if smallest < 2:
            yield Finding("capacity", "refuse", f"Some HCA port holds {smallest} P_Keys: beside Default none fits. "
                          "Look at its firmware profile.")  # fmt: skip
    else:
        yield Finding("fabric", "refuse", "No HCA port was found on the fabric. Look at the cabling of the manager "
                      "hosts, and qualify again.")  # fmt: skip
    if fabric.enforced < fabric.ports - fabric.unreadable:
        yield Finding("enforcement", "warn", f"The leaf switches enforce P_Keys on {fabric.enforced} of {fabric.ports} "
                      "HCA ports: on the others isolation rests on the HCA alone.")  # fmt: skip


def _of_sweeps(sweeps: Sweeps | None, rate: int) -> Iterator[Finding]:
    if sweeps is None or not sweeps.alone:
        yield Finding("sweep", "refuse", "No heavy sweep was measured. Qualify again and allow it to cause some: each "
                      "is what a pulled cable causes as well.")  # fmt: skip
        return
    seconds = median(sweeps.alone)
    yield Finding("sweep", "note", f"A heavy sweep takes {seconds:.2f} s (median of {len(sweeps.alone)}).")
    best = sweeps.rate
    if best is None:
        yield Finding("rate", "refuse", "Every rate that was tried slowed the sweep. Qualify again in a quiet hour; if "
                      "it stays so, lower FABRICUI_READ_SMPS_PER_S.")  # fmt: skip
        return
    told = "; ".join(f"{pace(one)} {median(taken):.2f} s" for one, taken in sorted(sweeps.beside.items()))
    yield Finding("rate", "note", f"Reading {pace(best)} does not slow the sweep ({told}).")
    if (rate or UNPACED) > best:
        sentence = (
            f"FABRICUI_READ_SMPS_PER_S is {rate}, and reading {pace(rate or UNPACED)} slows the sweep; {best} does "
            "not. Set it to that, restart the workers, and qualify again."
        )
        yield Finding("rate", "refuse", sentence)


def unanswered(answers: Mapping[str, object]) -> tuple[str, ...]:
    """The items of the checklist that nobody has answered with true, by their names."""
    return tuple(item for item in CHECKLIST if answers.get(item) is not True)


def rates_to_try(rate: int) -> Sequence[int]:
    """The configured rate (0: unpaced), then lower ones, until one is slow enough for any fabric."""
    lower = (4000, 2000, 1000, 500) if rate == 0 else (rate // 2, rate // 4, rate // 8)
    return (rate or UNPACED, *(one for one in lower if one >= 100))


def pace(rate: int) -> str:
    """“at 2,000 SMPs a second”, or “unpaced”."""
    return "unpaced" if rate >= UNPACED else f"at {rate:,} SMPs a second"

"""The worker's part of a qualification: ask every manager host, read the fabric, measure sweeps, leave a report.

Shape of the report (plain JSON):
{"version": 1, "source": "site" | "lab", "subnet": name, "at": UTC text,
 "managers": {name: {"public_id", "port_guid", "role", "account", "opensm_version", "opensm_exe", "opensm_unit",
              "config_file", "options", "options_digest", "pieces": [[name, is there, sentence]], "error"}},
 "fabric": {"ports", "unreadable", "enforced", "capacities": {keys: ports}, "sms": [[guid, node type, state]]} | null,
 "sweeps": {"alone": [s], "beside": {rate: [s]}, "rate": n | null} | null,
 "tried": {version: …}, "findings": [{"check", "severity", "sentence", "where"}], "is_fit": bool}
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from deploy import opensm_versions, qualification, queries
from deploy.look import told
from deploy.models import RUNNING, Qualification
from deploy.story import READ_TIMEOUT_S
from inventory.models import ManagerHost
from remote.errors import RemoteError
from remote.host_check import QualifyVerbs
from subnet.errors import InvalidListing
from subnet.observed import ObservedFabric, parse_reading
from subnet.qualification import FabricFacts, Finding, HostFacts, Piece, Sweeps, is_fit, judge, rates_to_try

SWEEP_TIMEOUT_S: Final = 60.0
SWEEPS_OF_EACH: Final = 3


@dataclass
class Gathered:
    """What could be learnt; a host that did not answer has no facts and a sentence in `errors`."""

    facts: dict[str, HostFacts] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    fabric: FabricFacts | None = None
    sweeps: Sweeps | None = None
    notes: list[Finding] = field(default_factory=list)

    @property
    def master(self) -> str | None:
        """The one host whose SM is master."""
        masters = [name for name, role in self.roles.items() if role == "MASTER"]
        return masters[0] if len(masters) == 1 else None


def qualify(
    *,
    request: Qualification,
    hosts: Sequence[QualifyVerbs],
    clock: Callable[[], datetime] = timezone.now,
    sweeps_of_each: int = SWEEPS_OF_EACH,
) -> None:
    """Do what `request` asks for; it ends DONE with a report. Waits (stays requested) while a rollout runs.

    A host that cannot be asked, or a fabric that cannot be read, is a finding that refuses, not a failure.
    """
    rollout = queries.running_rollout(request.subnet)
    if rollout is not None and rollout.state in RUNNING:
        return
    if not qualification.take_up(request, now=clock()):
        return
    gathered = gather(hosts, may_sweep=request.may_sweep, sweeps_of_each=sweeps_of_each)
    rows = {host.name: host for host in ManagerHost.objects.filter(subnet=request.subnet_id)}
    report = report_of(gathered, rows, subnet=request.subnet.name, now=clock())
    qualification.store(request=request, report=report, now=clock())


def gather(hosts: Sequence[QualifyVerbs], *, may_sweep: bool, sweeps_of_each: int = SWEEPS_OF_EACH) -> Gathered:
    """Everything that the hosts can say and show, one after the other: nothing here is in a hurry."""
    gathered = Gathered()
    by_name = {host.name: host for host in hosts}
    for name, host in by_name.items():
        try:
            gathered.facts[name] = host.check()
            gathered.roles[name] = host.sm_state().state
        except RemoteError as error:
            gathered.errors[name] = told(name, error)
    asked = gathered.master or next((name for name in gathered.roles), None)
    if asked is not None:
        try:
            gathered.fabric = _fabric(by_name[asked])
        except (RemoteError, InvalidListing) as error:
            gathered.errors.setdefault(asked, told(asked, error))
    if may_sweep and gathered.master is not None:
        try:
            gathered.sweeps = measure(by_name[gathered.master], each=sweeps_of_each)
        except RemoteError as error:
            gathered.notes.append(Finding("sweep", "refuse", told(gathered.master, error), gathered.master))
    return gathered


def measure(host: QualifyVerbs, *, each: int) -> Sweeps:
    """Sweeps alone and beside our reader in turn, at the configured rate and then at lower ones until one is harmless.

    `each` of either kind a rate. A sweep that ran without the reader beside it counts for nothing and is tried again
    once. Raises RemoteError.
    """
    host.sweep(smps_per_s=0, timeout_s=SWEEP_TIMEOUT_S)  # the first one may have work left over from others
    alone: list[float] = []
    beside: dict[int, tuple[float, ...]] = {}
    for rate in rates_to_try(settings.READ_SMPS_PER_S):
        taken: list[float] = []
        for _ in range(each):
            alone.append(host.sweep(smps_per_s=0, timeout_s=SWEEP_TIMEOUT_S).seconds)
            for _ in range(2):
                measured = host.sweep(smps_per_s=rate, timeout_s=SWEEP_TIMEOUT_S)
                if measured.was_read_beside:
                    taken.append(measured.seconds)
                    break
        if not taken:
            continue
        beside[rate] = tuple(taken)
        if Sweeps(tuple(alone), beside).is_harmless(rate):
            break
    return Sweeps(tuple(alone), beside)


def facts_of(reading: ObservedFabric) -> FabricFacts:
    """What a qualification wants to know of one reading."""
    ports = reading.end_ports.values()
    read = [port for port in ports if port.is_read]
    return FabricFacts(
        capacities=dict(Counter(port.capacity for port in read)),
        ports=len(ports),
        unreadable=len(ports) - len(read),
        enforced=sum(port.leaf is not None and port.leaf.enforce_in and port.leaf.enforce_out for port in read),
        sms=tuple(
            (str(sm.guid), reading.ports[sm.guid].node_type if sm.guid in reading.ports else "?", sm.state)
            for sm in reading.sms
        ),
    )


def report_of(gathered: Gathered, rows: Mapping[str, ManagerHost], *, subnet: str, now: datetime) -> dict[str, Any]:
    """The report on what was gathered, with every judgement in it."""
    versions = opensm_versions.tried()
    hosts = {name: gathered.facts.get(name) or _silent(gathered, name) for name in rows}
    findings = [*gathered.notes]
    for name, facts in hosts.items():
        findings += _pins(name, facts, rows[name])
    findings += judge(
        hosts,
        gathered.fabric,
        gathered.sweeps,
        versions=versions,
        registered={str(row.port_guid) for row in rows.values()},
        rate=settings.READ_SMPS_PER_S,
    )
    used = {facts.opensm_version for facts in hosts.values()}
    return {
        "version": 1,
        "source": "site",
        "subnet": subnet,
        "at": now.isoformat(),
        "managers": {name: _manager(rows[name], facts, gathered) for name, facts in hosts.items()},
        "fabric": None if gathered.fabric is None else _fabric_json(gathered.fabric),
        "sweeps": None if gathered.sweeps is None else _sweeps_json(gathered.sweeps),
        "tried": {version: versions[version].to_json() for version in sorted(used & versions.keys())},
        "findings": [finding.to_json() for finding in findings],
        "is_fit": is_fit(findings),
    }


def _silent(gathered: Gathered, name: str) -> HostFacts:
    """A host that did not answer, as facts: one missing piece with the reason."""
    sentence = gathered.errors.get(name, f"Manager host {name} was not asked.")
    return HostFacts("", "", "", "", "", pieces=(Piece("answer", False, sentence),))


def _pins(name: str, facts: HostFacts, row: ManagerHost) -> list[Finding]:
    """The installed programs against the ones pinned at enrolment, and the registered port."""
    found = []
    pinned = (row.wrapper_digest, row.reader_digest)
    if facts.wrapper_digest and (facts.wrapper_digest, facts.reader_digest) != pinned:
        sentence = (
            "The wrapper or the table reader there is not the one that was pinned. Run install of this release there, "
            "compare what it prints, and pin it (manage.py repin_manager_host)."
        )
        found.append(Finding("pins", "refuse", sentence, name))
    if facts.port_guid and facts.port_guid != row.port_guid:
        sentence = f"host.env names port {facts.port_guid}, and {row.port_guid} is enrolled. Run install there again."
        found.append(Finding("port", "refuse", sentence, name))
    return found


def _fabric(host: QualifyVerbs) -> FabricFacts:
    data = host.read_tables(topology="discovery", smps_per_s=settings.READ_SMPS_PER_S, timeout_s=READ_TIMEOUT_S)
    return facts_of(parse_reading(data))


def _manager(row: ManagerHost, facts: HostFacts, gathered: Gathered) -> dict[str, Any]:
    return {
        "public_id": row.public_id,
        "port_guid": str(row.port_guid),
        "role": gathered.roles.get(row.name, ""),
        "error": gathered.errors.get(row.name, ""),
        **qualification.facts_json(facts),
    }


def _fabric_json(fabric: FabricFacts) -> dict[str, Any]:
    return {
        "ports": fabric.ports,
        "unreadable": fabric.unreadable,
        "enforced": fabric.enforced,
        "capacities": {str(keys): count for keys, count in sorted(fabric.capacities.items())},
        "sms": [list(sm) for sm in fabric.sms],
    }


def _sweeps_json(sweeps: Sweeps) -> dict[str, Any]:
    return {
        "alone": [round(seconds, 4) for seconds in sweeps.alone],
        "beside": {str(rate): [round(one, 4) for one in taken] for rate, taken in sorted(sweeps.beside.items())},
        "rate": sweeps.rate,
    }

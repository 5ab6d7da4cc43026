"""One stored run becomes the Order that the two hosts are given."""

import secrets
from typing import Final

from probes.errors import ProbeRefused
from probes.members import Roll, may_be_probed, roll_of
from probes.models import ProbeRun, ProbeScope
from probes.profiles import LEAST_LATENCY_SAMPLES, profile
from probes.settings_of_scope import NEVER_BUSY_PCT
from probes.terms import Kind, Order, PortChoice

DEFAULT_PKEY: Final = 0x7FFF  # what an InfiniBand port of a probe set uses
TCP_BYTES: Final = 64 << 20  # the named interface may be the management one
TRANSFER_TIMEOUT_S: Final = 30.0
# An emulated processor may stand still for a second: 8 tries of 1.1 s (kvprobe 4.2).
PATIENT_TRANSFER_TIMEOUT_S: Final = 60.0
PATIENT_ACK_TIMEOUT: Final = 18
PATIENT_LATENCY_SAMPLES: Final = 1_000  # enough for p99; ten times as many take an emulated host minutes
USUAL_ACK_TIMEOUT: Final = 14


def order_of(run: ProbeRun, *, roll: Roll | None = None) -> Order:
    """The order of `run`, with a fresh seed. Raises ProbeRefused when the pair may not be probed any more.

    Rights are looked at again here, because a run may have waited while a tenant withdrew its consent.
    """
    refusal = may_be_probed([run.sender, run.target])
    if refusal:
        raise ProbeRefused(refusal)
    by_host = (roll or roll_of(run.scope)).by_host
    if run.sender_id not in by_host or run.target_id not in by_host:
        raise ProbeRefused(f"{run.sender} and {run.target} are not both in {run.scope} any more.")
    sender, target = by_host[run.sender_id].rail(run.rail), by_host[run.target_id].rail(run.rail)
    if sender.is_limited and target.is_limited:
        raise ProbeRefused(f"Both ports hold the P_Key of {run.scope} as limited members, which cannot talk.")
    kind = Kind(run.kind)
    samples = PATIENT_LATENCY_SAMPLES if run.scope.is_patient else LEAST_LATENCY_SAMPLES
    most = run.scope.bytes_per_run if kind is Kind.RDMA else min(TCP_BYTES, run.scope.bytes_per_run)
    return Order(
        profile=profile(run.profile, most_bytes=most, samples=samples),
        seed=secrets.randbits(63),
        kind=kind,
        pkey=_pkey(run.scope, is_ethernet=sender.is_ethernet and target.is_ethernet),
        sl=run.scope.service_level,
        sender=_end(sender.choice, run, kind),
        target=_end(target.choice, run, kind),
        ack_timeout=PATIENT_ACK_TIMEOUT if run.scope.is_patient else USUAL_ACK_TIMEOUT,
        busy_above_pct=None if run.scope.busy_pct >= NEVER_BUSY_PCT else run.scope.busy_pct,
        transfer_timeout_s=PATIENT_TRANSFER_TIMEOUT_S if run.scope.is_patient else TRANSFER_TIMEOUT_S,
    )


def _pkey(scope: ProbeScope, *, is_ethernet: bool) -> int | None:
    if scope.partition is not None:
        return scope.partition.pkey
    return None if is_ethernet else DEFAULT_PKEY


def _end(choice: PortChoice, run: ProbeRun, kind: Kind) -> PortChoice:
    """One end's port; a TCP baseline goes through the interface that the settings name."""
    if kind is Kind.RDMA:
        return choice
    return PortChoice(interface=choice.interface or run.scope.tcp_interface)

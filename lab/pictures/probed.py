"""A provider with probe hosts, and results as two hosts would give them. No host is reached."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from audit.values import SYSTEM
from inventory.models import Server
from lab.pictures.provider import Provider
from partitions.models import Partition
from probes import operations, running
from probes.advice import advice_for
from probes.histogram import Histogram
from probes.models import ProbeHost, ProbeRun, ProbeScope
from probes.planning import runs_of_pair
from probes.schedule import Why
from probes.terms import Kind, Outcome, RunResult

HOST_KEY = "ssh-ed25519 " + "A" * 68
START = timezone.now().replace(microsecond=0)


def pairs_of(histogram: Histogram) -> list[list[int]]:
    return [[bucket, count] for bucket, count in sorted(histogram.counts.items())]


def evidence(**more: Any) -> dict[str, Any]:
    """As `probes.evidence.assemble` puts it together, the parts that a page shows."""
    end = {
        "backend": "pyverbs 44.0", "device": "mlx5_0", "port": 1, "link_layer": "InfiniBand", "lid": 7, "mtu": 4096,
        "rate": "400 Gb/sec (4X NDR)", "node_guid": "0x0002c90400000100", "pkey_index": 1, "pkey_entry": 0xAC41,
        "qpns": [311], "counters_before": {"port_xmit_data": 1}, "counters_after": {"port_xmit_data": 268_435_457},
    }  # fmt: skip
    return {
        "kind": "RDMA", "seed": "4711", "profile": "link", "mtu": 4096, "sender": dict(end),
        "target": dict(end, lid=9, node_guid="0x0002c90400000200"),
        "checksum": {"sent": "ab" * 32, "held": "ab" * 32},
    } | more  # fmt: skip


def ok(gbps: float = 390.0, *, ns: int = 21_000, samples: int = 1200, **more: Any) -> RunResult:
    """A run that measured; `pct_line` is of 400 Gb/s."""
    figures = {
        "gbps": gbps, "mb_s": gbps * 125, "pct_line": gbps / 4, "seconds": 0.02, "bytes": 1 << 30, "pieces": 1024,
        "post_share": 0.02, "mmsgs": 0.05, "histogram": pairs_of(Histogram.of([ns] * samples)),
    }  # fmt: skip
    fields = {"outcome": Outcome.OK, "kind": Kind.RDMA, "evidence": evidence(), "figures": figures} | more
    return RunResult(**fields)


def lost(outcome: Outcome = Outcome.PEER_LOST) -> RunResult:
    return RunResult(
        outcome=outcome, kind=Kind.RDMA, reason="The target's program ended mid-run.", advice=advice_for(outcome),
        at="target",
    )  # fmt: skip


@dataclass
class Probed:
    """One partition of some servers that consented, with a scope that is switched on."""

    provider: Provider
    partition: Partition
    scope: ProbeScope
    hosts: list[ProbeHost]
    results: list[RunResult] = field(default_factory=list)

    def run(
        self, result: RunResult, *, sender: int = 0, target: int = 1, profile: str = "link", at: datetime = START,
        kind: Kind = Kind.RDMA, why: Why = Why.ROUND,
    ) -> ProbeRun:  # fmt: skip
        """One run of a pair that ends with `result`."""
        rows = runs_of_pair(
            self.scope, sender=self.hosts[sender].pk, target=self.hosts[target].pk, why=why, now=at, due_at=at
        )
        row = rows[0]
        row.profile, row.kind, row.state = profile, kind, ProbeRun.State.CLAIMED
        row.save()
        running.run(run_id=row.pk, measure=lambda *_: result, clock=lambda: at)
        row.refresh_from_db()
        return row


def add_host(server: Server, provider: Provider) -> ProbeHost:
    return operations.add_probe_host(
        server=server, address=f"{server.hostname}.mgmt", ssh_user="fabricui-probe", host_key=HOST_KEY,
        program_digest="1" * 64, wrapper_digest="2" * 64, actor=SYSTEM,
    )  # fmt: skip

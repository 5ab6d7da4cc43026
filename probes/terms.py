"""The words of one probe run: what was ordered, and what came of it. Pure: no Django, no I/O, no clock.

`probes.session` takes an Order and gives a RunResult; the on-host program speaks JSON and knows none of these classes.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How the bytes went. Runs of different kinds are never one series and never compared."""

    RDMA = "RDMA"
    TCP = "TCP"  # a baseline over a named interface; it says nothing about the InfiniBand port


class Verb(StrEnum):
    """The one-sided operation that moves the bytes. The sender of a READ pulls: bytes go from the target to it."""

    WRITE = "WRITE"
    READ = "READ"


class Mode(StrEnum):
    """How the pieces lie and are posted (kvprobe, 1.2 and 1.4)."""

    CONTIGUOUS = "contiguous"  # neighbouring pieces, in order
    SCATTER = "scatter"  # random order at both ends, drawn from the seed
    LATENCY = "latency"  # one piece outstanding at a time


class Outcome(StrEnum):
    """What came of a run. Only OK is a number about RDMA, only TCP_OK one about TCP; all others are failed runs."""

    OK = "OK"
    TCP_OK = "TCP_OK"

    # The hosts cannot do it.
    NO_RDMA = "NO_RDMA"  # no usable pyverbs under the configured Python
    NO_DEVICE = "NO_DEVICE"  # the kernel shows no RDMA device, or not the ordered one
    UNSUPPORTED = "UNSUPPORTED"  # the device has no reliable connections (EFA), or the ends differ in link layer
    PORT_DOWN = "PORT_DOWN"  # there is a device, but the port is not ACTIVE
    NO_ADDRESS = "NO_ADDRESS"  # no LID (InfiniBand) or no usable RoCE v2 GID (Ethernet)
    NO_COMMON_PKEY = "NO_COMMON_PKEY"  # a port lacks the ordered P_Key, or both hold it as limited members
    MTU_MISMATCH = "MTU_MISMATCH"  # an end refuses the smaller active MTU of the two
    MEMLOCK = "MEMLOCK"  # the account may not pin the buffer (ulimit -l)
    BUSY = "BUSY"  # another probe holds the port, or others send much through it: put off, no finding

    # The hosts cannot be reached or are not what they should be.
    UNREACHABLE = "UNREACHABLE"  # no SSH connection, before anything ran
    ACCESS_REFUSED = "ACCESS_REFUSED"  # sshd refused the probe key
    HOST_KEY_MISMATCH = "HOST_KEY_MISMATCH"  # another machine answers
    PROGRAM_MISMATCH = "PROGRAM_MISMATCH"  # the wrapper or the on-host program is not the pinned one
    STUB_DEVICE = "STUB_DEVICE"  # what verbs shows is not what the kernel shows: no RDMA device
    WRONG_DEVICE = "WRONG_DEVICE"  # a real device, but not the one registered for this server

    # It began and went wrong.
    PEER_LOST = "PEER_LOST"  # an end, or its SSH channel, ended mid-run
    TIMED_OUT = "TIMED_OUT"  # an end did not answer in its time
    TRANSFER_FAILED = "TRANSFER_FAILED"  # a completion with an error status
    CORRUPT = "CORRUPT"  # the target's memory does not hold what was sent
    OVERFLOW = "OVERFLOW"  # a host wrote more than a run ever needs
    PROTOCOL = "PROTOCOL"  # an end answered something else than was asked
    HOST_ERROR = "HOST_ERROR"  # the on-host program failed in a way that has no name

    # A number came out that may not be believed.
    REFUSED_EVIDENCE = "REFUSED_EVIDENCE"  # a part of the evidence is missing or contradicts another
    IMPLAUSIBLE = "IMPLAUSIBLE"  # faster than the line, or faster than light in the cable


@dataclass(frozen=True, slots=True)
class Profile:
    """What is moved: `pieces` pieces of `piece_bytes` are prepared at each end, and `total_bytes` moved through them.

    For LATENCY `total_bytes / piece_bytes` is the number of samples. `queue_pairs` (1 to 8) share the pieces; `chain`
    pieces are posted with one call and complete with one completion, 0 chooses by piece size.
    """

    name: str
    verb: Verb
    piece_bytes: int
    pieces: int
    mode: Mode
    total_bytes: int
    queue_pairs: int = 1
    chain: int = 0

    @property
    def buffer_bytes(self) -> int:
        """What each end pins."""
        return self.piece_bytes * self.pieces


@dataclass(frozen=True, slots=True)
class PortChoice:
    """Which port an end uses, and what the controller knows about it. Empty and None mean: any, or not known.

    `node_guid` and `port_guid` are canonical text (`0x` + 16 digits) as registered; a device that shows others is
    refused. `interface` is the Ethernet interface of a RoCE port or of a TCP baseline.
    """

    device: str = ""
    port: int = 0
    node_guid: str = ""
    port_guid: str = ""
    interface: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """One run from a sender to a target. `pkey` is the 15-bit value, None on Ethernet; `sl` the partition's.

    `cable_m` is the least length of the way in metres, for the rule that nothing is faster than light; `seed` gives
    the pattern and the order of the pieces, and differs from run to run. An unanswered packet is sent again after
    4.096 µs × 2^`ack_timeout`, `retry_count` (0 to 7) times (kvprobe, 4.2). `tcp_port` (0 = free) is for Kind.TCP.

    A port through which others send more than `busy_above_pct` of its rate just before is BUSY; None: nobody looks.

    `target_pkey` is for an attempt that must fail only: the P_Key of the target's end, `pkey` being the sender's.
    """

    profile: Profile
    seed: int
    kind: Kind = Kind.RDMA
    pkey: int | None = None
    target_pkey: int | None = None
    sl: int = 0
    traffic_class: int = 0
    sender: PortChoice = PortChoice()
    target: PortChoice = PortChoice()
    cable_m: float = 0.5
    ack_timeout: int = 14
    retry_count: int = 7
    tcp_port: int = 0
    transfer_timeout_s: float = 30.0
    busy_above_pct: float | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of one Order. `advice` says how to mend a failure, `reason` what was seen; both are for people.

    `figures` is empty unless the outcome is OK or TCP_OK. It holds: `mb_s` (10^6 payload bytes a second), `gbps`,
    `pct_line` (RDMA only: of the slower port's own rate), `seconds`, `bytes`, `pieces`, `mmsgs` (10^6 pieces a second),
    `chain` (pieces a completion), `samples`, `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns`, `min_ns`, `max_ns` (post to
    completion of one chain: a round trip), `post_share` (of the time, spent in posting), `post_ns` (per posted chain),
    and `histogram`: [[bucket, count], …] with 8 buckets per power of two, where v < 8 ns is bucket v and else
    bucket = (e - 2) * 8 + ((v >> (e - 3)) & 7) with e = floor(log2 v).
    `evidence` is kvprobe 3.8: {"backend", "sender": {…}, "target": {…}, "checksum", …}; parts of it also stand beside a
    failure. `at` names the failing end: "sender", "target" or "".
    """

    outcome: Outcome
    kind: Kind
    reason: str = ""
    advice: str = ""
    at: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """Whether `figures` may be stored as a number of its kind."""
        return self.outcome in {Outcome.OK, Outcome.TCP_OK}

"""ProbeHost, ProbeSet and its members, ProbeScope with its settings, ProbeRun, ProbePair, ProbeDay, Incident, consent.

A *scope* is where pairs come from: a partition, or a probe set for hosts without a P_Key (RoCE, lab guests). A *pair*
row is one series: sender, target, rail, profile, kind and mode in a scope, with what the newest run found.
"""

from django.db import models
from django.db.models import Q

from deploy.models import Rollout
from inventory.models import Server, Subnet
from partitions.models import Partition
from people.models import Tenant
from people.public_id import new_public_id
from probes.judgement import Verdict
from probes.querysets import HostQuerySet, IsolationQuerySet, PairQuerySet, RunQuerySet, ScopeQuerySet
from probes.schedule import LoadMode, Why
from probes.terms import Kind, Outcome
from probes.verdict import Isolation


def _choices(enum: type[Isolation | Kind | LoadMode | Outcome | Verdict | Why]) -> list[tuple[str, str]]:
    return [(item.value, item.value.lower().replace("_", " ")) for item in enum]


class ProbeHost(models.Model):
    """How the probe worker reaches one server. Its account and key are not those of manager hosts."""

    server = models.OneToOneField(Server, on_delete=models.PROTECT, related_name="probe_host")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    address = models.CharField(max_length=255)
    ssh_port = models.PositiveIntegerField(default=22)
    ssh_user = models.CharField(max_length=64)
    host_key = models.CharField(max_length=200)  # "ssh-ed25519 AAAA…", pinned, never auto-added
    program_digest = models.CharField(max_length=64)  # SHA-256 of the installed on-host program
    wrapper_digest = models.CharField(max_length=64)  # SHA-256 of its forced command
    added_at = models.DateTimeField(auto_now_add=True)
    withdrawn_at = models.DateTimeField(null=True)
    busy_until = models.DateTimeField(null=True)  # it said BUSY: planned around until then

    objects = HostQuerySet.as_manager()

    def __str__(self) -> str:
        return self.server.hostname


class ProbeSet(models.Model):
    """Hosts that are probed with one another although no partition names them, such as RoCE hosts."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="probe_sets")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=60)
    note = models.TextField(blank=True)  # what the reader of its numbers must know
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subnet", "name"], name="probe_set_name")]

    def __str__(self) -> str:
        return self.name


class ProbeSetMember(models.Model):
    """One host of a probe set, and which of its ports is used there; empty: the host chooses an active one."""

    probe_set = models.ForeignKey(ProbeSet, on_delete=models.CASCADE, related_name="members")
    host = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="set_memberships")
    device = models.CharField(max_length=64, blank=True)
    port = models.PositiveSmallIntegerField(default=0)
    interface = models.CharField(max_length=32, blank=True)  # of a RoCE port, or for the TCP baseline

    class Meta:
        constraints = [models.UniqueConstraint(fields=["probe_set", "host"], name="one_probe_set_member")]

    def __str__(self) -> str:
        return f"{self.host} in {self.probe_set}"


class ProbeScope(models.Model):
    """A partition or a probe set, how its pairs are probed, and how far the rounds have come."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="probe_scopes")
    partition = models.OneToOneField(Partition, on_delete=models.PROTECT, null=True, related_name="probe_scope")
    probe_set = models.OneToOneField(ProbeSet, on_delete=models.PROTECT, null=True, related_name="scope")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    is_enabled = models.BooleanField(default=False)
    profiles = models.JSONField(default=list)  # names of probes.profiles
    interval_s = models.PositiveIntegerField(default=300)
    budget = models.PositiveIntegerField(default=4)  # pairs a tick, each with every profile
    bytes_per_run = models.PositiveBigIntegerField(default=1 << 30)
    mode = models.CharField(max_length=6, choices=_choices(LoadMode), default=LoadMode.QUIET)
    has_all_rails = models.BooleanField(default=False)  # False: the first port of each host only
    windows = models.TextField(blank=True)  # blackout windows, one a line (probes.windows)
    thresholds = models.JSONField(default=dict)  # probes.judgement.Thresholds
    ttft_budget_ms = models.PositiveIntegerField(default=500)
    tcp_interface = models.CharField(max_length=32, blank=True)  # empty: no TCP baseline
    service_level = models.PositiveSmallIntegerField(default=0)
    is_patient = models.BooleanField(default=False)  # its hosts are emulated, or very slow: wait longer for them
    busy_pct = models.PositiveSmallIntegerField(
        default=20, db_default=20
    )  # a run waits when others send more through its port
    next_at = models.DateTimeField(null=True)  # the tick looks at it again then
    position = models.PositiveBigIntegerField(default=0)  # of the rounds (probes.pairing)
    rail = models.PositiveSmallIntegerField(default=0)  # whose turn it is

    objects = ScopeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(partition__isnull=True, probe_set__isnull=False)
                | Q(partition__isnull=False, probe_set__isnull=True),
                name="probe_scope_is_one_of_two",
            )
        ]

    def __str__(self) -> str:
        return str(self.partition or self.probe_set)

    @property
    def kind_word(self) -> str:
        """What it is, in a word."""
        return "partition" if self.partition_id is not None else "probe set"


class ProbeConsent(models.Model):
    """Whether a tenant lets probes run on its servers. No row, or False: control-plane checks only."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="probe_consent")
    is_given = models.BooleanField(default=False)
    at = models.DateTimeField()
    by_name = models.CharField(max_length=150)

    def __str__(self) -> str:
        return f"{self.tenant} {'consents' if self.is_given else 'does not consent'}"


class ProbeRun(models.Model):
    """One transfer between two hosts. Only one that ended DONE has a number; everything else has a reason."""

    class Test(models.TextChoices):
        TRANSFER = "TRANSFER", "transfer"
        ISOLATION = "ISOLATION", "isolation"  # an attempt that must fail

    class State(models.TextChoices):
        QUEUED = "QUEUED", "queued"
        CLAIMED = "CLAIMED", "claimed"  # handed to the worker, which has not begun
        RUNNING = "RUNNING", "running"
        DONE = "DONE", "done"
        FAILED = "FAILED", "failed"
        DROPPED = "DROPPED", "dropped"  # never begun: too late, or no longer allowed
        DEFERRED = "DEFERRED", "deferred"  # a port was busy; `next_try` is the row that tries again

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    test = models.CharField(max_length=9, choices=Test, default=Test.TRANSFER)
    kind = models.CharField(max_length=4, choices=_choices(Kind), default=Kind.RDMA)
    scope = models.ForeignKey(ProbeScope, on_delete=models.PROTECT, related_name="runs")
    sender = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="sent_runs")
    target = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="received_runs")
    pair = models.ForeignKey("ProbePair", on_delete=models.SET_NULL, null=True, related_name="runs")  # once it is over
    rail = models.PositiveSmallIntegerField(default=0)
    profile = models.CharField(max_length=80)
    mode = models.CharField(max_length=6, choices=_choices(LoadMode))
    why = models.CharField(max_length=7, choices=_choices(Why))
    asked_by = models.CharField(max_length=150, blank=True)  # the person, for NOW
    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, null=True, related_name="probe_runs")
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    due_at = models.DateTimeField()
    drop_at = models.DateTimeField()  # not begun by then: DROPPED
    claimed_until = models.DateTimeField(null=True)  # CLAIMED or RUNNING beyond it: the worker is gone
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    next_try = models.OneToOneField("self", on_delete=models.SET_NULL, null=True, related_name="deferred")
    outcome = models.CharField(max_length=20, choices=_choices(Outcome), blank=True)
    reason = models.TextField(blank=True)  # what was seen
    advice = models.TextField(blank=True)  # how to mend it
    failed_at_end = models.CharField(max_length=6, blank=True)  # sender, target
    link_layer = models.CharField(max_length=12, blank=True)
    is_software = models.BooleanField(default=False)  # Soft-RoCE: shows the path, not the speed
    gbps = models.FloatField(null=True)
    pct_line = models.FloatField(null=True)
    p50_ns = models.FloatField(null=True)
    p99_ns = models.FloatField(null=True)
    samples = models.PositiveIntegerField(default=0)
    figures = models.JSONField(default=dict)
    histogram = models.JSONField(default=dict)  # of chain completions in ns: probes.histogram
    evidence = models.JSONField(default=dict)
    verdict = models.CharField(max_length=4, choices=_choices(Verdict), default=Verdict.NONE)
    findings = models.JSONField(default=list)  # [{"rule", "verdict", "sentence"}]

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["state", "due_at"], name="probe_run_due"),
            models.Index(fields=["pair", "-finished_at"], name="probe_run_series"),
            models.Index(fields=["finished_at"], name="probe_run_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=~Q(sender=models.F("target")), name="probe_run_has_two_ends"),
            # A failed run is never a number, whatever the code above believes.
            models.CheckConstraint(
                condition=Q(state="DONE", outcome__in=("OK", "TCP_OK"))
                | (~Q(state="DONE") & Q(gbps=None, pct_line=None, p50_ns=None, p99_ns=None, samples=0)),
                name="probe_number_only_when_done",
            ),
            models.CheckConstraint(
                condition=~Q(state="DONE") | Q(kind="RDMA", outcome="OK") | Q(kind="TCP", outcome="TCP_OK"),
                name="probe_kinds_never_mix",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.profile} {self.sender} → {self.target}"


class ProbePair(models.Model):
    """One series and its newest run: what the heat map shows and the judgement compares with."""

    scope = models.ForeignKey(ProbeScope, on_delete=models.CASCADE, related_name="pairs")
    sender = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="sent_pairs")
    target = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="received_pairs")
    rail = models.PositiveSmallIntegerField(default=0)
    profile = models.CharField(max_length=80)
    kind = models.CharField(max_length=4, choices=_choices(Kind))
    mode = models.CharField(max_length=6, choices=_choices(LoadMode))
    newest = models.ForeignKey(ProbeRun, on_delete=models.SET_NULL, null=True, related_name="+")
    newest_at = models.DateTimeField()
    outcome = models.CharField(max_length=20, choices=_choices(Outcome))
    verdict = models.CharField(max_length=4, choices=_choices(Verdict), default=Verdict.NONE)
    gbps = models.FloatField(null=True)
    pct_line = models.FloatField(null=True)
    p50_ns = models.FloatField(null=True)
    recent = models.JSONField(default=list)  # values of the last runs that measured, newest last, at most HISTORY
    verdicts = models.JSONField(default=list)  # of the last runs, newest first, a few

    objects = PairQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "profile", "kind", "mode", "sender", "target", "rail"], name="one_probe_pair"
            )
        ]
        indexes = [models.Index(fields=["scope", "newest_at"], name="probe_pair_age")]

    def __str__(self) -> str:
        return f"{self.profile} {self.sender} → {self.target}"


class ProbeDay(models.Model):
    """One day of a series after its runs were rolled up: histograms, so that percentiles stay true."""

    pair = models.ForeignKey(ProbePair, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    runs = models.PositiveIntegerField()  # that measured
    failed = models.PositiveIntegerField()
    rates = models.JSONField()  # histogram of the runs' rates in Mb/s
    completions = models.JSONField()  # merged histogram of chain completions in ns

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "day"], name="one_probe_day")]

    def __str__(self) -> str:
        return f"{self.pair} on {self.day}"


class IsolationCheck(models.Model):
    """One thing that must fail from one server to another of a different tenant, and the verdict on it."""

    class Plane(models.TextChoices):
        CONTROL = "CONTROL", "control plane"  # the SA refuses a path: the SM's view only
        DATA = "DATA", "data plane"  # a write between the two is dropped

    class State(models.TextChoices):
        QUEUED = "QUEUED", "queued"
        RUNNING = "RUNNING", "running"
        DONE = "DONE", "done"
        DROPPED = "DROPPED", "not run"  # the tables changed, or it may not be made any more

    class Cause(models.TextChoices):
        ROLLOUT = "ROLLOUT", "a rollout"
        SCHEDULE = "SCHEDULE", "the schedule"
        NOW = "NOW", "a person"

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="isolation_checks")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    plane = models.CharField(max_length=7, choices=Plane)
    sender = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(Server, on_delete=models.PROTECT, related_name="+")
    sender_guid = models.CharField(max_length=18, blank=True)  # of the port; empty on Ethernet
    target_guid = models.CharField(max_length=18, blank=True)
    sender_tenant = models.CharField(max_length=60, blank=True)  # its label then; empty: no tenant's
    target_tenant = models.CharField(max_length=60, blank=True)
    cause = models.CharField(max_length=8, choices=Cause)
    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, null=True, related_name="isolation_checks")
    asked_by = models.CharField(max_length=150, blank=True)  # the person, for NOW
    state = models.CharField(max_length=7, choices=State, default=State.QUEUED)
    asked_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)  # RUNNING beyond it: the worker is gone
    finished_at = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=12, choices=_choices(Isolation), blank=True)
    is_confirmed = models.BooleanField(default=False)  # by a counter
    sentence = models.TextField(blank=True)
    evidence = models.JSONField(default=dict)

    objects = IsolationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(sender=models.F("target")), name="isolation_check_has_two_ends"),
            models.CheckConstraint(
                condition=Q(state="DONE") & ~Q(verdict="") | ~Q(state="DONE") & Q(verdict=""),
                name="isolation_verdict_when_done",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "plane"], name="isolation_waiting"),
            models.Index(fields=["subnet", "-asked_at"], name="isolation_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.sender} → {self.target} ({self.get_plane_display()})"


class Incident(models.Model):
    """Something a person should look at. It stays until somebody acknowledges it, also when it is good again."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    pair = models.ForeignKey(ProbePair, on_delete=models.CASCADE, null=True, related_name="incidents")
    # Of a leak instead of a pair: the check that found it. Such an incident is critical.
    leak = models.ForeignKey(IsolationCheck, on_delete=models.PROTECT, null=True, related_name="incidents")
    leak_of = models.CharField(max_length=60, blank=True)  # plane and both servers: one open incident each
    rule = models.CharField(max_length=12)  # probes.judgement.Rule, or "leak"
    sentence = models.TextField()
    run = models.ForeignKey(ProbeRun, on_delete=models.SET_NULL, null=True, related_name="+")  # that opened it
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # last bad run
    times = models.PositiveIntegerField(default=1)
    recovered_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pair", "rule"], condition=Q(acknowledged_at=None), name="one_open_incident"
            ),
            models.UniqueConstraint(
                fields=["leak_of"], condition=Q(acknowledged_at=None) & ~Q(leak_of=""), name="one_open_leak"
            ),
            models.CheckConstraint(
                condition=Q(pair=None) & ~Q(leak=None) & ~Q(leak_of="") | ~Q(pair=None) & Q(leak=None, leak_of=""),
                name="incident_is_one_of_two",
            ),
        ]
        indexes = [models.Index(fields=["acknowledged_at", "-opened_at"], name="incident_open_first")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.leak or self.pair}"


class RolloutComparison(models.Model):
    """A pair that a rollout touched: its last run before, and the first one after."""

    rollout = models.ForeignKey(Rollout, on_delete=models.PROTECT, related_name="probe_comparisons")
    scope = models.ForeignKey(ProbeScope, on_delete=models.CASCADE, related_name="comparisons")
    sender = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(ProbeHost, on_delete=models.PROTECT, related_name="+")
    profile = models.CharField(max_length=80)
    before = models.ForeignKey(ProbeRun, on_delete=models.SET_NULL, null=True, related_name="+")
    after = models.ForeignKey(ProbeRun, on_delete=models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField()
    given_up_at = models.DateTimeField(null=True)  # no run came in time

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rollout", "scope", "sender", "target", "profile"], name="one_rollout_comparison"
            )
        ]

    def __str__(self) -> str:
        return f"{self.sender} → {self.target} around {self.rollout}"

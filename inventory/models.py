"""Subnet, ManagerHost, Server, HCA, Port, what became of them, and what registration needs to remember."""

from typing import ClassVar

from django.db import models

from inventory.fields import GUIDField
from inventory.querysets import ManagerHostManager, PortQuerySet, ServerQuerySet
from people.models import Tenant
from people.public_id import new_public_id

DEFAULT_PREFIX = "0xfe80000000000000"  # OpenSM's default subnet prefix (IBA: the link-local GID prefix)


class Subnet(models.Model):
    """Ports and links under one master SM, and how far FabricUI may go there."""

    class Mode(models.TextChoices):
        OBSERVE = "OBSERVE", "observe"  # everything but plans that are placed
        PROPOSE = "PROPOSE", "propose"  # plans and revisions, nothing placed
        WRITE = "WRITE", "write"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    name = models.SlugField(max_length=40, unique=True)  # stands in the header of partitions.conf
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.OBSERVE)
    frozen_at = models.DateTimeField(null=True)
    frozen_reason = models.TextField(blank=True)
    qualification = models.JSONField(null=True)  # of the releases before reports had rows; nothing reads it
    # Upper half of every GID in it, as OpenSM's `subnet_prefix`; a port that reports another one is in another subnet.
    prefix = GUIDField(default=DEFAULT_PREFIX)
    looked_at = models.DateTimeField(null=True)  # when the whole fabric was last read (`operations.record_seen`)

    def __str__(self) -> str:
        return self.name


class ManagerHost(models.Model):
    """A machine that runs one SM of the subnet. Paths on it are its own business (host.env)."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="manager_hosts")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    name = models.SlugField(max_length=40)
    address = models.CharField(max_length=255)
    ssh_port = models.PositiveIntegerField(default=22)
    ssh_user = models.CharField(max_length=64)
    host_key = models.CharField(max_length=200)  # "ssh-ed25519 AAAA…", pinned at enrolment, never auto-added
    port_guid = GUIDField()  # the port its OpenSM is bound to
    wrapper_digest = models.CharField(max_length=64)  # SHA-256 of the installed wrapper
    reader_digest = models.CharField(max_length=64)  # SHA-256 of the installed table reader
    enrolled_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)  # nobody asks it any more; rollouts and adopted files still name it

    # A retired host is no manager host any more: whoever asks for the hosts of a subnet must not get it by oversight.
    objects: ClassVar[ManagerHostManager] = ManagerHostManager()
    with_retired: ClassVar[models.Manager["ManagerHost"]] = models.Manager()

    class Meta:
        base_manager_name = "with_retired"
        constraints = [
            models.UniqueConstraint(
                fields=["subnet", "name"], condition=models.Q(retired_at=None), name="manager_host_name"
            ),
            models.UniqueConstraint(
                fields=["subnet", "port_guid"], condition=models.Q(retired_at=None), name="manager_host_port"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Server(models.Model):
    """A machine that reports itself. What it says is a claim; the fabric decides."""

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="servers")
    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    hostname = models.CharField(max_length=255)  # as enrolled; a report under another name does not change it
    boot_id = models.CharField(max_length=64, blank=True)
    registered_at = models.DateTimeField(auto_now_add=True)
    reported_at = models.DateTimeField(null=True)  # the last report, changed or not
    report = models.JSONField(null=True)  # the last report that changed anything, as it came
    report_digest = models.CharField(max_length=64, blank=True)
    # Labels: what people write on it. They move nothing; by `tenant` its people see it, unless it is another's.
    rack = models.CharField(max_length=40, blank=True, default="", db_default="")
    unit = models.CharField(max_length=20, blank=True, default="", db_default="")
    serial = models.CharField(max_length=64, blank=True, default="", db_default="")
    tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True, related_name="+")

    objects = ServerQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subnet", "hostname"], name="server_hostname")]

    def __str__(self) -> str:
        return self.hostname


class HCA(models.Model):
    """One host channel adapter of a server, known by its node GUID (by its device while that cannot be read)."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="hcas")
    node_guid = GUIDField(unique=True, null=True)
    system_image_guid = GUIDField(null=True)
    device = models.CharField(max_length=64)  # mlx5_0; a name the host may change at will
    firmware = models.CharField(max_length=64, blank=True, default="", db_default="")  # as reported
    board_id = models.CharField(max_length=64, blank=True, default="", db_default="")  # as reported

    def __str__(self) -> str:
        return f"{self.device} ({self.node_guid})"


class Port(models.Model):
    """An end port, known by its port GUID. It may have no HCA row: seen on the fabric, or named in a file."""

    class LinkLayer(models.TextChoices):
        INFINIBAND = "INFINIBAND", "InfiniBand"
        ETHERNET = "ETHERNET", "Ethernet"

    subnet = models.ForeignKey(Subnet, on_delete=models.PROTECT, related_name="ports")
    hca = models.ForeignKey(HCA, on_delete=models.SET_NULL, null=True, related_name="ports")
    guid = GUIDField(unique=True)
    number = models.PositiveSmallIntegerField(default=1)
    link_layer = models.CharField(max_length=10, choices=LinkLayer, default=LinkLayer.INFINIBAND)
    state = models.CharField(max_length=20, blank=True)  # as reported: ACTIVE, INIT, DOWN …
    phys_state = models.CharField(max_length=20, blank=True)
    rate_text = models.CharField(max_length=60, blank=True)
    rate_gbps = models.FloatField(null=True)
    lid = models.PositiveIntegerField(null=True)  # as reported; only unicast LIDs are kept
    sm_lid = models.PositiveIntegerField(null=True)  # as reported; 0: the port knows no subnet manager
    subnet_prefix = GUIDField(null=True)  # as reported
    missing_since = models.DateTimeField(null=True)  # its server has reported without it since then
    confirmed_at = models.DateTimeField(null=True)  # None: *unconfirmed*, cannot be staged
    confirmed_how = models.CharField(max_length=20, blank=True)  # person | enrolled | witnessed
    home_leaf_guid = GUIDField(null=True)  # the switch it was cabled to when it was confirmed
    home_leaf_port = models.PositiveSmallIntegerField(null=True)
    # The other witness: what our own reading of the fabric last showed of it.
    seen_at = models.DateTimeField(null=True)
    seen_node_guid = GUIDField(null=True, db_index=True)
    seen_lid = models.PositiveIntegerField(null=True)
    seen_sm_lid = models.PositiveIntegerField(null=True)
    # As the reader prints it, or ABSENT: the whole fabric was read and the port was not there.
    seen_state = models.CharField(max_length=20, blank=True, default="", db_default="")
    seen_description = models.CharField(max_length=64, blank=True, default="", db_default="")  # untrusted text
    leaf_guid = GUIDField(null=True)  # node GUID of the switch it is cabled to, from our own reading
    leaf_port = models.PositiveSmallIntegerField(null=True)
    # The NodeDescription beside it in an imported listing: text that anybody with root there can choose, nobody's key.
    description = models.CharField(max_length=64, blank=True, db_default="")
    # How both stand to each other: subnet.witness.Verdict, and its points; empty while nobody spoke of it.
    testimony = models.CharField(max_length=12, blank=True, default="", db_default="")
    points = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    # Whose partitions it was last in, as far as is known: no other tenant's may take it until it is marked clean.
    former_tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True, related_name="+")

    objects = PortQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["subnet", "link_layer"], name="port_candidates"),
            models.Index(fields=["leaf_guid", "leaf_port"], name="port_place"),  # the list of leaves
        ]

    def __str__(self) -> str:
        return str(self.guid)

    @property
    def server(self) -> Server | None:
        """The server that reports it; reads `self.hca.server`, so fetch that with the row."""
        return None if self.hca is None else self.hca.server


class PortConflict(models.Model):
    """Two servers claim one port GUID; a person decides. Nothing moves until then."""

    port = models.ForeignKey(Port, on_delete=models.CASCADE, related_name="conflicts")
    claimed_by = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="+")
    claim = models.JSONField()  # the reported port as it came
    # What stood against each other when it was opened: {"holder", "claimant", "fabric"}, see inventory/evidence.py.
    evidence = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    opened_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)
    decision = models.CharField(max_length=20, blank=True)  # rejected | moved | cloned
    decided_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["port", "claimed_by"], condition=models.Q(closed_at=None), name="one_open_conflict"
            )
        ]

    def __str__(self) -> str:
        return f"{self.claimed_by} claims {self.port}"


class HistoryEntry(models.Model):
    """One thing that became of a server or a port: never what it may do, only what it was and is."""

    class Kind(models.TextChoices):
        REBOOT = "REBOOT", "reboot"
        DEVICE = "DEVICE", "device name"
        FIRMWARE = "FIRMWARE", "firmware"
        LINK = "LINK", "link"
        CABLE = "CABLE", "cable"
        MISSING = "MISSING", "reported"
        CARD = "CARD", "HCA"

    class Witness(models.TextChoices):
        SERVER = "SERVER", "the server"
        FABRIC = "FABRIC", "the fabric"
        PERSON = "PERSON", "a person"

    server = models.ForeignKey(Server, on_delete=models.CASCADE, null=True, related_name="history")
    port = models.ForeignKey(Port, on_delete=models.SET_NULL, null=True, related_name="history")
    at = models.DateTimeField()
    kind = models.CharField(max_length=10, choices=Kind)
    witness = models.CharField(max_length=10, choices=Witness)
    what = models.CharField(max_length=64)  # the port or node GUID, or the host name, of that moment
    before = models.CharField(max_length=120, blank=True)
    after = models.CharField(max_length=120, blank=True)

    class Meta:
        indexes = [models.Index(fields=["server", "-id"], name="history_newest")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.what}: {self.before} → {self.after}"


class EnrolmentToken(models.Model):
    """Lets servers exchange it for a credential of their own; stored hashed, shown once."""

    subnet = models.ForeignKey(Subnet, on_delete=models.CASCADE, related_name="enrolment_tokens")
    name = models.CharField(max_length=60)
    digest = models.CharField(max_length=64, unique=True)
    uses_left = models.PositiveIntegerField(default=1)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    # Its scope. A token for more than one server is for a rack; who may use it can be narrowed further.
    rack = models.CharField(max_length=60, blank=True, db_default="")
    hostnames = models.CharField(max_length=255, blank=True, db_default="")  # patterns as in a shell: r12-*,r13-0?
    networks = models.CharField(max_length=255, blank=True, db_default="")  # where it may be shown: 10.1.12.0/24
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class ServerCredential(models.Model):
    """A server's own narrow credential: it may report itself and nothing else."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="credentials")
    digest = models.CharField(max_length=64, unique=True)
    issued_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)
    token = models.ForeignKey(EnrolmentToken, on_delete=models.SET_NULL, null=True, related_name="+")  # what let it in
    # The one it takes over from, until it is shown for the first time: then that one is revoked and this is null.
    replaces = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    # A person wants it replaced: the answer to the next report says so, whatever its age.
    is_to_be_renewed = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"credential of {self.server}"

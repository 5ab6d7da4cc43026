"""The control-plane check through all layers, two real OpenSM of a simulated fabric."""

from contextlib import contextmanager

import pytest
from django.utils import timezone

from audit.values import SYSTEM
from deploy import operations as deploy
from inventory.models import HCA, ManagerHost, Port, Server, Subnet
from probes import isolation, path_checks
from probes.models import Incident, IsolationCheck
from subnet.guid import GUID
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable
from tests.remote.mini_fabric import mini_fabric, port_guid
from tests.remote.sites import make_key, wait_until

pytestmark = [pytest.mark.contract, pytest.mark.xdist_group("isolation-fabric"), pytest.mark.django_db]

MASTER, ASIDE, STANDBY = 0, 2, 5
ACME, BERT = (1, 3), (4,)
TENANTS = {"acme": (0x10, ACME), "bert": (0x20, BERT)}


def file(default: str) -> bytes:
    lines = [f"Default=0x7fff, ipoib, defmember=limited :\n ALL={default},\n ALL_SWITCHES=full,"]
    lines += [f" {port_guid(MASTER)}=full,\n {port_guid(STANDBY)}=full,\n SELF=full;"]
    for name, (pkey, hcas) in TENANTS.items():
        lines.append(f"{name}=0x{pkey:04x}, defmember=full : {', '.join(port_guid(hca) for hca in hcas)};")
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """Two OpenSM, and a third host without one that is limited in Default."""
    key = tmp_path_factory.mktemp("keys") / "key"
    make_key(key)
    with mini_fabric(tmp_path_factory.mktemp("isolation")) as running:
        seats = (("m1", MASTER), ("m2", STANDBY), ("m3", ASIDE))
        hosts = [running.manager_host(name, hca, key.with_suffix(".pub")) for name, hca in seats]
        for host in hosts:
            host.partitions.write_bytes(file("limited"))
        for host, hca, priority, word in ((hosts[0], MASTER, 14, "SUBNET UP"), (hosts[1], STANDBY, 1, "STANDBY")):
            running.start_opensm(host, hca, priority=priority)
            wait_until(lambda host=host, word=word: host.log.exists() and word in host.log.read_text(), within_s=90)
        yield hosts


@pytest.fixture
def subnet(db):
    """The rows of that fabric: three servers, two tenants' partitions, both SM hosts."""
    subnet = Subnet.objects.create(name="lab", mode=Subnet.Mode.WRITE)
    for name, hca in (("m1", MASTER), ("m2", STANDBY)):
        ManagerHost.objects.create(
            subnet=subnet, name=name, address="127.0.0.1", ssh_user="fabricui", host_key="ssh-ed25519 AAAA",
            port_guid=port_guid(hca), wrapper_digest="0" * 64, reader_digest="0" * 64,
        )  # fmt: skip
    for hca in (*ACME, *BERT):
        server = Server.objects.create(subnet=subnet, hostname=f"srv-{hca}")
        card = HCA.objects.create(
            server=server, node_guid=GUID(f"0x{int(port_guid(hca), 16) - 1:016x}"), device="mlx5_0"
        )
        Port.objects.create(subnet=subnet, hca=card, guid=GUID(port_guid(hca)))
    partitions = tuple(
        Partition(
            pkey=PKey(pkey), name=name, tenant=name,
            members=tuple(Member(GUID(port_guid(hca)), Membership.FULL) for hca in hcas),
        )
        for name, (pkey, hcas) in TENANTS.items()
    )  # fmt: skip
    table = PartitionTable(sm_ports=(GUID(port_guid(MASTER)), GUID(port_guid(STANDBY))), partitions=partitions)
    deploy.record_first_revision(subnet=subnet, table=table, actor=SYSTEM)
    return subnet


def checked(subnet, *hosts):
    """Sampled strangers, asked about from these hosts: {verdict: [row]}."""
    pairs, tenancy = isolation.sample(subnet, most=2)
    assert len(pairs) == 2
    isolation.ask(subnet, pairs, tenancy=tenancy, cause="NOW", now=timezone.now())

    @contextmanager
    def connect(_):
        yield [host.locally() for host in hosts]

    assert path_checks.run(subnet_id=subnet.pk, connect=connect) == 4
    found = {}
    for row in IsolationCheck.objects.all():
        found.setdefault(row.verdict, []).append(row)
    return found


@pytest.mark.parametrize("asker", [0, 1], ids=["master", "standby"])
def test_strangers_are_isolated_and_the_pair_of_one_partition_is_the_control(fabric, subnet, asker):
    found = checked(subnet, fabric[asker])
    assert set(found) == {"ISOLATED"}, [row.sentence for rows in found.values() for row in rows]
    row = found["ISOLATED"][0]
    assert row.evidence["answer"]["answer"] == "refused"
    assert row.evidence["sm"] == port_guid(MASTER)
    same = [one for one in row.evidence["controls_before"] if one.get("pkey", "") in ("0x8010", "0x0010")]
    assert same, row.evidence


def test_a_limited_asker_ends_inconclusive(fabric, subnet):
    found = checked(subnet, fabric[2])
    assert set(found) == {"INCONCLUSIVE"}
    assert "is not a full member of Default" in found["INCONCLUSIVE"][0].sentence


def test_an_open_default_is_a_leak_that_alarms(fabric, subnet):
    def settle(default):
        for host in fabric[:2]:
            host.partitions.write_bytes(file(default))
        manager = fabric[0].locally()
        manager.barrier(manager.reload(), timeout_s=60)

    settle("full")
    try:
        found = checked(subnet, fabric[0])
    finally:
        settle("limited")
    assert set(found) == {"LEAK"}
    assert "in P_Key 0xffff" in found["LEAK"][0].sentence
    assert Incident.objects.filter(rule="leak", acknowledged_at=None).count() == 4

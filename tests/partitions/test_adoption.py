"""Adoption on rows: what is explained, what stands in the way, and what becomes of the file's partitions."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from deploy import files, queries
from deploy.errors import NotWritable
from deploy.models import Observation, Revision, Rollout
from inventory.models import ManagerHost, Port, Subnet
from partitions import adoption
from partitions.errors import AdoptionRefused, StalePlan
from partitions.models import DefaultRule, Membership, Partition
from partitions.operations import draw_up_plan
from partitions.selection import Selection
from subnet.guid import GUID
from subnet.pkey import PKey
from tests.partitions.by_hand import ByHand, build
from tests.subnet.by_hand import BY_HAND
from tests.subnet.test_adoption import N

NAMED = b"Default=0x7fff,ipoib: ALL=full, 0x0210fa0300a60001=limited;\n" + BY_HAND["A41"].split(b"\n", 1)[1]


@pytest.fixture
def site(db) -> ByHand:
    return build()


def adopt(site: ByHand, look: Observation, **options) -> Revision:
    explained = adoption.explain_look(observation=look, owners=options.get("owners"))
    return adoption.adopt(observation=look, digest=explained.digest, actor=site.olga, **options)


def obstacles(look: Observation) -> dict[str, str]:
    return {one.rule: f"{one.sentence} {one.mend}" for one in adoption.explain_look(observation=look).obstacles}


def test_a_look_is_explained_and_nothing_is_written(site: ByHand):
    look = site.look(NAMED)
    explained = adoption.explain_look(observation=look)
    assert explained.is_adoptable
    assert explained.obstacles == ()
    assert "+foraldralos_AO=0x0011, defmember=limited :" in explained.diff
    assert "# server srv-003, 1 port" in explained.diff
    assert not Partition.objects.exists()
    assert not Revision.objects.exists()


def test_adopting_writes_rows_ports_revision_and_trail(site: ByHand):
    revision = adopt(site, site.look(NAMED), reason="ticket 12")
    rows = {row.name: row for row in Partition.objects.all()}
    assert {name: (row.pkey, row.tenant, row.found_name) for name, row in rows.items()} == {
        "GPU_tenant-A_prod": (0x10, None, '"GPU tenant-A (prod)"'),
        "foraldralos_AO": (0x11, None, "föräldralös ÄÖ"),
        "this-name-is-longer-than-thirty": (0x12, None, ""),
    }
    assert {(row.partition.name, row.port.guid, row.kind) for row in Membership.objects.all()} == {
        ("GPU_tenant-A_prod", N[2], "full"),
        ("foraldralos_AO", N[3], "full"),
        ("this-name-is-longer-than-thirty", N[4], "full"),
    }
    assert set(Port.objects.values_list("guid", flat=True)) == {N[2], N[3], N[4], N[6]}
    assert Port.objects.get(guid=N[6]).server is None
    assert DefaultRule.objects.get(subnet=site.subnet).members == [[N[6], "limited"]]
    assert queries.current_revision(site.subnet) == revision == adoption.adopted_revision(site.subnet)
    assert files.Standing.of(revision).data == NAMED
    told = [(event.action, event.reason) for event in Event.objects.filter(action__contains="adopt")]
    assert told == [("partitions:partition:adopt", "")] * 3 + [("deploy:revision:adopt", "ticket 12")]


def test_partitions_may_be_given_to_tenants(site: ByHand):
    owners = {PKey(0x10): site.acme, PKey(0x11): site.bert}
    revision = adopt(site, site.look(NAMED), owners=owners)
    assert dict(Partition.objects.values_list("pkey", "tenant__slug")) == {0x10: "acme", 0x11: "bert", 0x12: None}
    assert [partition.tenant for partition in revision.partition_table().partitions] == ["acme", "bert", None]
    assert Port.objects.get(guid=N[3]).former_tenant == site.bert
    event = Event.objects.filter(action="partitions:partition:adopt").earliest("number")
    assert event.tenant_key == site.acme.public_id


def test_a_port_in_two_partitions_cannot_have_two_tenants(site: ByHand):
    text = f"Default=0x7fff: ALL=full;\nA=0x10: {N[3]}=full;\nB=0x11: {N[3]}=full;\n".encode()
    look = site.look(text)
    assert adoption.explain_look(observation=look).is_adoptable
    with pytest.raises(AdoptionRefused, match="Choose other owners"):
        adopt(site, look, owners={PKey(0x10): site.acme, PKey(0x11): site.bert})
    assert not Partition.objects.exists()


def test_a_partition_whose_members_are_named_by_keyword_is_no_tenants(site: ByHand):
    look = site.look(b"Default=0x7fff: ALL=full;\nA=0x10: ALL=limited, SELF=full;\n")
    with pytest.raises(AdoptionRefused, match="it holds ports of others than acme"):
        adopt(site, look, owners={PKey(0x10): site.acme})
    assert not Partition.objects.exists()
    adopt(site, look)
    assert Partition.objects.get(pkey=0x10).tenant is None


def test_placing_starts_a_rollout_whose_plan_is_empty(site: ByHand, nudges):
    look = site.look(NAMED)
    first = adopt(site, look)
    rollout = adoption.place(subnet=site.subnet, observation=look, actor=site.olga)
    assert (rollout.state, rollout.parent) == (Rollout.State.QUEUED, first)
    assert rollout.revision.table_digest == first.table_digest
    assert bytes(rollout.revision.data) != NAMED


def test_a_subnet_in_mode_observe_is_adopted_and_nothing_is_placed(db):
    site = build(mode=Subnet.Mode.OBSERVE)
    look = site.look(NAMED)
    adopt(site, look)
    with pytest.raises(NotWritable):
        adoption.place(subnet=site.subnet, observation=look, actor=site.olga)


def test_the_plan_page_knows_the_adopted_file(site: ByHand):
    look = site.look(NAMED)
    adopt(site, look)
    drawn = draw_up_plan(subnet=site.subnet, selection=Selection.mine(), user=site.olga)
    assert {file.note for file in drawn.files} == {
        f"The file of {host} is the hand-written file that was adopted as revision 1. Place it in FabricUI's words "
        "first, on the adoption page."
        for host in ("m1", "m2")
    }


def test_nothing_waits_to_be_placed_before_it_is_adopted(site: ByHand):
    with pytest.raises(AdoptionRefused, match="no adopted file"):
        adoption.place(subnet=site.subnet, observation=site.look(NAMED), actor=site.olga)


def test_what_is_adopted_is_what_was_looked_at(site: ByHand):
    look = site.look(NAMED)
    with pytest.raises(StalePlan, match="has changed since you looked"):
        adoption.adopt(observation=look, digest="0" * 64, actor=site.olga)
    explained = adoption.explain_look(observation=look)
    site.server.hostname = "renamed"
    site.server.save()
    assert adoption.explain_look(observation=look).digest == explained.digest  # a label alone is nothing
    Partition.objects.create(subnet=site.subnet, name="prod", pkey=0x10)
    with pytest.raises(StalePlan):
        adoption.adopt(observation=look, digest=explained.digest, actor=site.olga)
    assert adopt(site, look).partition_table().partition(PKey(0x10)).name == "prod"


@pytest.mark.parametrize("first", ["acme", None])
def test_adopting_again_gives_no_partition_another_owner(site: ByHand, first):
    """Its row keeps its owner; a table that named another one would part the board from the file."""
    look = site.look(NAMED)
    adopt(site, look, owners={PKey(0x10): site.acme} if first else {})
    with pytest.raises(AdoptionRefused, match=r"0x0010\) is (Acme|the provider)'s already"):
        adopt(site, site.look(NAMED), owners={PKey(0x10): site.bert})
    revision = adopt(site, site.look(NAMED))
    rows = dict(Partition.objects.values_list("pkey", "tenant__slug"))
    assert {int(p.pkey): p.tenant for p in revision.partition_table().partitions} == rows


def test_an_old_look_is_not_adopted(site: ByHand):
    look = site.look(NAMED, age=timedelta(hours=1))
    with pytest.raises(StalePlan, match="Take a new look"):
        adopt(site, look)


def test_a_managed_subnet_is_not_adopted_again(site: ByHand):
    look = site.look(NAMED)
    adopt(site, look)
    rollout = adoption.place(subnet=site.subnet, observation=look, actor=site.olga)
    rollout.subnet.fence.delete()
    from deploy.models import Fence

    Fence.objects.create(subnet=site.subnet, current=rollout.revision)
    with pytest.raises(AdoptionRefused, match="managed by FabricUI already"):
        adopt(site, look)


def test_another_file_on_the_standby_is_in_the_way(site: ByHand):
    found = obstacles(site.look(NAMED, standby=NAMED.replace(b"=0x11", b"=0x21")))
    assert list(found) == ["files-differ"]
    assert "m2 holds another partition file than the master m1" in found["files-differ"]
    assert "the tables of 1 ports" in found["files-differ"]
    comment = obstacles(site.look(NAMED, standby=NAMED + b"# by Joe\n"))
    assert "would change no port's table" in comment["files-differ"]


def test_a_master_on_the_second_host_is_told_by_its_role(site: ByHand):
    found = obstacles(site.look(NAMED, standby=NAMED + b"# x\n", roles=("STANDBY", "MASTER"), tables_of=NAMED))
    assert "m1 holds another partition file than the master m2" in found["files-differ"]


@pytest.mark.parametrize(
    ("options", "rule", "words"),
    [
        ({"tables_of": BY_HAND["A44"]}, "drift", "Reload the master"),
        ({"rogue": GUID("0x0210fa0300a50001")}, "unregistered-sm", "Enrol that host as a manager host, or stop OpenSM"),
        ({"roles": ("MASTER", "")}, "no-standby", "Start OpenSM on a second manager host"),
        ({"roles": ("STANDBY", "STANDBY")}, "no-master", "No subnet manager on the fabric is master"),
        ({"roles": ("MASTER", "MASTER")}, "no-master", "No registered manager host's SM is the only master"),
        ({"columns": {"m2": {"error": "Manager host m2: no connection."}}}, "not-read", "Mend that"),
        ({"columns": {"m2": {"problems": ["OpenSM runs with another -P."]}}}, "host", "another -P"),
        ({"columns": {"m2": {"digest": "f" * 64}}}, "not-kept", "64 MiB"),
        ({"columns": {"m2": {"host": "m3"}}}, "not-read", "enrolled after this look"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_told_with_the_mending_step(site: ByHand, options, rule: str, words: str):
    look = site.look(NAMED, **options)
    found = obstacles(look)
    assert rule in found
    assert words in found[rule]
    with pytest.raises(AdoptionRefused):
        adopt(site, look)
    assert not Revision.objects.exists()


def test_a_file_that_opensm_rejects_is_in_the_way(site: ByHand):
    found = obstacles(site.look(NAMED.replace(b"\n", b"\r\n")))
    assert "OpenSM rejects the whole file" in found["rejected"]
    assert "every port is a full member of Default" in found["rejected"]


def test_a_look_that_failed_says_why(site: ByHand):
    look = adoption.look_for_adoption(subnet=site.subnet, actor=site.olga)
    Observation.objects.filter(pk=look.pk).update(state="FAILED", failure="The fabric could not be read.")
    look.refresh_from_db()
    assert obstacles(look) == {"look-failed": "The fabric could not be read. Look again."}


def test_no_manager_host_is_in_the_way(site: ByHand):
    look = site.look(NAMED)
    ManagerHost.objects.all().delete()
    assert "no-manager-host" in obstacles(look)


class TestTheCommand:
    """`./run manage adopt`: a program reads its JSON, a person its lines; only the worker reaches the hosts."""

    @pytest.fixture
    def worker(self, site: ByHand, monkeypatch):
        """A look is finished as soon as it is asked for, on the file that `worker` is called with."""

        def looks_at(data: bytes, **options) -> None:
            monkeypatch.setattr(adoption, "look_for_adoption", lambda *, subnet, actor: site.look(data, **options))

        return looks_at

    def run(self, *arguments: str) -> tuple[str, int]:
        out, status = StringIO(), 0
        try:
            call_command("adopt", "lab", *arguments, stdout=out)
        except SystemExit as end:
            status = int(end.code or 0)
        return out.getvalue(), status

    def test_it_explains_and_does_nothing_by_itself(self, worker):
        worker(NAMED)
        text, status = self.run()
        assert status == 0
        assert "8 ports hold what the file says, 0 were not read; 0 would change." in text
        assert "0x0011  foraldralos_AO: 1 ports by GUID" in text
        assert not Revision.objects.exists()

    def test_json_is_for_programs(self, worker):
        worker(NAMED)
        said = json.loads(self.run("--json")[0])
        assert said["adoptable"] is True
        assert said["ports"] == {"compared": 8, "not_compared": 0, "would_change": []}
        assert said["partitions"][1] == {
            "pkey": "0x0011", "name": "foraldralos_AO", "found_name": "föräldralös ÄÖ", "auto_numbered": False,
            "programmed": True, "members": 1, "keywords": [],
        }  # fmt: skip
        assert said["rollout"] is None

    def test_what_stands_in_the_way_is_an_exit_status(self, worker):
        worker(NAMED, standby=BY_HAND["A44"])
        text, status = self.run("--yes")
        assert status == 1
        assert text.startswith("REFUSED  Manager host m2 holds another partition file")
        assert not Revision.objects.exists()

    def test_with_yes_it_adopts_and_waits_for_the_proof(self, worker, site: ByHand, monkeypatch):
        worker(NAMED)
        placed = adoption.place

        def place_and_prove(**options):
            rollout = placed(**options)
            Rollout.objects.filter(pk=rollout.pk).update(state="PROVEN", finished_at=rollout.requested_at)
            return rollout

        monkeypatch.setattr(adoption, "place", place_and_prove)
        text, status = self.run("--yes", "--owner", "0x0010=acme")
        assert status == 0
        assert "PROVEN. No port changed" in text
        assert Partition.objects.get(pkey=0x10).tenant == site.acme

    def test_without_a_worker_it_says_what_to_start(self, site: ByHand):
        with pytest.raises(CommandError, match=r"\./run up"):
            self.run("--wait", "0.01")

    def test_unknown_names_are_refused(self, worker):
        worker(NAMED)
        with pytest.raises(CommandError, match="no tenant"):
            self.run("--owner", "0x0010=nobody")
        with pytest.raises(CommandError, match="no subnet"):
            call_command("adopt", "elsewhere")

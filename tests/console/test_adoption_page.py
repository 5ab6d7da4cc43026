"""The adoption page: look, adopt, place, close Default; who may do it, and what it says when it may not be done."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from deploy.models import Fence, Observation, Revision, Rollout
from partitions import adoption
from partitions.models import Partition, StagedDefault
from tests.partitions.by_hand import ByHand, build
from tests.subnet.by_hand import BY_HAND
from tests.subnet.test_adoption import N

FILE = BY_HAND["A41"]
ACTIONS = ("look", "adopt", "place", "default")


@pytest.fixture
def site(db) -> ByHand:
    return build()


@pytest.fixture
def operator(site, client_of):
    return client_of(site.olga)


def address(site: ByHand, action: str = "") -> str:
    name = f"console:adoption_{action}" if action else "console:adoption"
    return reverse(name, args=[site.subnet.public_id])


def text(client, site: ByHand) -> str:
    answer = client.get(address(site))
    assert answer.status_code == 200
    return answer.content.decode()


def form(client, site: ByHand) -> dict[str, str]:
    """The hidden fields of the button that adopts."""
    explained = client.get(address(site)).context["adoption"]
    return {"observation": explained.observation.public_id, "digest": explained.digest}


def managed(site: ByHand, file: bytes = FILE) -> None:
    """Adopted, placed and proven, as the worker leaves it."""
    look = site.look(file)
    explained = adoption.explain_look(observation=look)
    adoption.adopt(observation=look, digest=explained.digest, actor=site.olga)
    rollout = adoption.place(subnet=site.subnet, observation=look, actor=site.olga)
    Fence.objects.filter(subnet=site.subnet).update(current=rollout.revision, rollout=None)
    Rollout.objects.filter(pk=rollout.pk).update(state="PROVEN", finished_at=timezone.now(), after=look)


def test_before_any_look_there_is_a_button(site, operator, nudges):
    assert address(site) == f"/subnets/{site.subnet.public_id}/adoption/"
    page = text(operator, site)
    assert "Nothing was looked at yet" in page
    operator.post(address(site, "look"))
    assert Observation.objects.get().why == "adoption"
    page = text(operator, site)
    assert "Reading files and tables…" in page
    assert 'hx-trigger="every 1s, refresh"' in page
    operator.post(address(site, "look"))
    assert Observation.objects.count() == 1


def test_the_explanation_shows_file_partitions_and_ports(site, operator):
    site.look(FILE)
    page = text(operator, site)
    assert "Nothing stands in the way" in page
    assert "föräldralös ÄÖ" in page
    assert "foraldralos_AO" in page
    assert "&quot;GPU tenant-A (prod)&quot;" in page
    assert "OpenSM keeps 31 bytes of the name" in page
    assert "diff-add" in page
    assert "# end" in page
    assert "srv-003" in page
    assert "0x8011" in page
    assert "Adopt as the first revision" in page


def test_the_button_adopts_with_the_chosen_owners_and_then_places(site, operator, nudges):
    site.look(FILE)
    answer = operator.post(
        address(site, "adopt"), form(operator, site) | {"owner-0x0010": "acme", "owner-0x0011": "", "reason": "row 4"}
    )
    assert answer.url == address(site)
    assert dict(Partition.objects.values_list("pkey", "tenant__slug")) == {0x10: "acme", 0x11: None, 0x12: None}
    assert Revision.objects.get().reason == "row 4"
    page = text(operator, site)
    assert "Place it in our words" in page
    answer = operator.post(address(site, "place"), {"observation": form(operator, site)["observation"]})
    assert answer.status_code == 302, answer.context["refusal"]
    assert answer.url == reverse("console:rollout", args=[Rollout.objects.get().public_id])
    assert "holds the subnet" in text(operator, site)


def test_what_is_in_the_way_is_told_and_there_is_no_button(site, operator):
    site.look(FILE, standby=BY_HAND["A44"])
    page = text(operator, site)
    assert "m2 holds another partition file" in page
    assert "Not adopted" in page
    assert "Adopt as the first revision" not in page
    answer = operator.post(address(site, "adopt"), form(operator, site))
    assert answer.status_code == 409
    assert "m2 holds another partition file" in answer.content.decode()
    assert not Revision.objects.exists()


def test_a_file_that_opensm_rejects_is_told(site, operator):
    site.look(FILE.replace(b"\n", b"\r\n"))
    page = text(operator, site)
    assert "OpenSM rejects the whole file" in page
    assert "Adopt as" not in page


def test_an_old_look_offers_a_new_one(site, operator):
    site.look(FILE, age=timedelta(hours=1))
    page = text(operator, site)
    assert "too old" in page
    assert "Adopt as the first revision" not in page
    answer = operator.post(address(site, "adopt"), form(operator, site))
    assert answer.status_code == 409


def test_a_failed_look_says_why(site, operator):
    Observation.objects.create(
        subnet=site.subnet, state="FAILED", why="adoption", requested_at=timezone.now(), finished_at=timezone.now(),
        failure="Manager host m1 cannot be reached. Start its sshd.",
    )  # fmt: skip
    assert "Manager host m1 cannot be reached. Start its sshd." in text(operator, site)


def test_a_frozen_or_observed_subnet_cannot_be_placed_on(site, operator):
    look = site.look(FILE)
    adoption.adopt(observation=look, digest=adoption.explain_look(observation=look).digest, actor=site.olga)
    site.subnet.mode = "OBSERVE"
    site.subnet.save()
    page = text(operator, site)
    assert "FabricUI only looks" in page
    answer = operator.post(address(site, "place"), {"observation": look.public_id})
    assert answer.status_code == 409
    assert not Rollout.objects.exists()


def test_after_it_default_is_closed_in_steps(site, operator):
    managed(site)
    page = text(operator, site)
    assert "lab is managed by FabricUI" in page
    assert "any server can reach any other" in page
    assert "6 ports become limited" not in page  # the managers' two stay full
    assert "4 ports become limited" in page
    assert "NCCL_IB_PKEY" in page
    answer = operator.post(
        address(site, "default"), {"how": "canary", "server": site.server.public_id, "reason": "try it"}
    )
    assert answer.url == address(site)
    assert StagedDefault.objects.get().members == [[N[3], "limited"]]
    assert "A change of Default is staged" in text(operator, site)
    operator.post(address(site, "default"), {"how": "discard"})
    assert not StagedDefault.objects.exists()
    operator.post(address(site, "default"), {"how": "everybody", "server": site.server.public_id})
    staged = StagedDefault.objects.get()
    assert staged.keywords[0] == ["ALL", "limited"]
    assert staged.members == [[N[3], "full"]]


def test_canaries_add_up_and_can_be_taken_back(site, operator):
    """A port that the file makes limited by GUID never becomes full because somebody chose a canary."""
    managed(site, FILE.replace(b"ALL=full", f"ALL=full,{N[5]}=limited".encode()))
    operator.post(address(site, "default"), {"how": "canary", "server": site.server.public_id})
    assert StagedDefault.objects.get().members == [[N[3], "limited"], [N[5], "limited"]]
    operator.post(address(site, "default"), {"how": "back", "server": site.server.public_id})
    assert not StagedDefault.objects.exists()  # that is what is current


def test_ports_that_closing_concerns_are_listed(site, operator):
    managed(site)
    page = text(operator, site)
    assert "These ports are in no partition" in page
    assert N[5] in page


def test_a_canary_needs_a_server_and_a_known_way(site, operator):
    managed(site)
    answer = operator.post(address(site, "default"), {"how": "canary"})
    assert answer.status_code == 409
    assert "Choose at least one server" in answer.content.decode()
    assert operator.post(address(site, "default"), {"how": "sideways"}).status_code == 404


def test_default_stays_until_the_adopted_file_is_placed(site, operator):
    look = site.look(FILE)
    adoption.adopt(observation=look, digest=adoption.explain_look(observation=look).digest, actor=site.olga)
    answer = operator.post(address(site, "default"), {"how": "everybody"})
    assert answer.status_code == 409
    assert "has to be placed as it is" in answer.content.decode()


def test_unknown_names_are_not_found(site, operator):
    site.look(FILE)
    assert operator.get(reverse("console:adoption", args=["nosuchsubnet"])).status_code == 404
    fields = form(operator, site)
    assert operator.post(address(site, "adopt"), fields | {"observation": "nonsense"}).status_code == 404
    assert operator.post(address(site, "adopt"), fields | {"owner-0x0010": "nobody"}).status_code == 404


def test_an_auditor_reads_and_does_nothing(site, ada, client_of):
    site.look(FILE)
    auditor = client_of(ada)
    page = text(auditor, site)
    assert "an operator goes on" in page
    assert "<form" not in page.split('id="adoption"')[1]
    before = Event.objects.count()
    for action in ACTIONS:
        assert auditor.post(address(site, action), {"how": "everybody"}).status_code == 404
    assert Event.objects.count() == before


def test_strangers_and_anonymous_people_learn_nothing(site, client, charlie, client_of):
    site.look(FILE)
    stranger = client_of(charlie)
    assert stranger.get(address(site)).status_code == 404
    assert client.get(address(site)).status_code == 302
    for action in ACTIONS:
        assert stranger.post(address(site, action)).status_code == 404
        assert client.post(address(site, action)).status_code == 302


def test_the_managers_page_leads_here(site, operator):
    assert address(site) in operator.get(reverse("console:managers")).content.decode()


def test_the_managers_page_knows_the_adopted_file(site, operator):
    look = site.look(FILE)
    adoption.adopt(observation=look, digest=adoption.explain_look(observation=look).digest, actor=site.olga)
    page = operator.get(reverse("console:managers")).content.decode()
    assert page.count("(hand-written, adopted)") == 2
    assert "differs" not in page
    assert "the hand-written file that was adopted as revision 1" in page


def test_an_edit_after_the_adoption_is_told_and_can_be_adopted(site, operator):
    look = site.look(FILE)
    adoption.adopt(observation=look, digest=adoption.explain_look(observation=look).digest, actor=site.olga)
    assert "Place and prove" in text(operator, site)
    site.look(FILE + b"# by Joe\n")
    page = text(operator, site)
    assert "somebody edited it since" in page
    assert "Place and prove" not in page
    operator.post(address(site, "adopt"), form(operator, site))
    assert Revision.objects.count() == 2
    assert "Place and prove" in text(operator, site)

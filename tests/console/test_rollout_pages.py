"""The rollouts' pages: each state in words, the buttons that fit it, closing words that claim no more than holds."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from console import lamps
from console.states import meaning
from deploy.models import Fence, HostOutcome, Rollout, RolloutStep

COUNTS = {"ports": 14, "proven": 14, "absent": 0, "unreadable": 0, "discrepancies": 0, "unaffected_ports_changed": 0}


@pytest.fixture
def rollout(site) -> Rollout:
    """A rollout that has just been queued."""
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    return site.provider.roll_out(site.provider.olga, reason="ticket 7")


def page_of(browser, rollout, **state) -> str:
    if state:
        Rollout.objects.filter(pk=rollout.pk).update(**state)
    return browser.get(reverse("console:rollout", args=[rollout.public_id])).content.decode()


@pytest.mark.parametrize("state", Rollout.State.values)
def test_every_state_has_its_word_and_only_its_buttons(rollout, operator, state):
    text = page_of(operator, rollout, state=state)
    assert lamps.rollout(state).word in text
    assert ("/cancel/" in text) == (state in ("QUEUED", "STAGING"))
    assert ("/check/" in text) == (state in ("UNPROVEN", "DEGRADED"))
    assert ("/release/" in text) == (state == "STUCK")
    unfinished = Rollout.State(state).is_running or Rollout.State(state).is_waiting
    assert ("rollout-poller" in text) == unfinished
    if state not in Rollout.State.values[:6]:
        assert 'id="closing"' in text


def test_the_story_and_the_hosts_are_told(rollout, operator):
    now = timezone.now()
    RolloutStep.objects.create(rollout=rollout, at=now, state="STAGING", host="m2", text="Staged 512 bytes.")
    HostOutcome.objects.filter(rollout=rollout, host__name="m2").update(
        role_at_start="STANDBY", staged_at=now, digest=rollout.revision.digest, failure="The disk of m2 is full."
    )
    text = page_of(operator, rollout, state="STAGING")
    assert "Staged 512 bytes." in text
    assert "standby" in text
    assert rollout.revision.digest[:12] in text
    assert "The disk of m2 is full." in text
    assert "ticket 7" in text


def test_proven_says_what_was_verified(rollout, operator):
    evidence = {"counts": COUNTS, "discrepancies": [], "owed": [], "not_checked": ["Links were not probed."]}
    text = page_of(operator, rollout, state="PROVEN", read_back=evidence, finished_at=timezone.now())
    assert "14 of 14 ports proven, 0 discrepancies, 0 other ports changed." in text
    assert "Links were not probed." in text
    assert "sweep barrier" in text


def test_proven_without_evidence_claims_nothing(rollout, operator):
    text = page_of(operator, rollout, state="PROVEN", read_back=None)
    assert "its evidence is not stored" in text
    assert "Verified" not in text


def test_discrepancies_and_causes_are_told(rollout, operator):
    sentence = "Port 0x0002c90400000101 holds 0xac41 at index 3, which nothing gives it."
    evidence = {
        "counts": COUNTS | {"discrepancies": 1, "proven": 13}, "discrepancies": [sentence],
        "census_problems": ["An SM that is not registered runs on 0x0002c903000c0001."], "owed": ["0x0002c90400000111"],
    }  # fmt: skip
    text = page_of(operator, rollout, state="STUCK", cause="Log in to m1 and look.", read_back=evidence)
    assert sentence in text
    assert "An SM that is not registered" in text
    assert "0x0002c90400000111" in text
    assert "Log in to m1 and look." in text


def test_untrusted_text_stays_text(rollout, operator):
    text = page_of(operator, rollout, state="REFUSED", cause="<script>alert(1)</script>")
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_the_fragment_is_the_body_alone(rollout, operator):
    address = reverse("console:rollout", args=[rollout.public_id])
    text = operator.get(address, HTTP_HX_REQUEST="true").content.decode()
    assert "<html" not in text
    assert 'id="rollout-poller"' in text


def test_the_fragment_brings_the_subnet_chip_along(rollout, operator):
    """Else the head went on saying “rolling out” beside “proven”."""
    address = reverse("console:rollout", args=[rollout.public_id])
    whole = operator.get(address).content.decode()
    assert whole.count('id="subnet-chip"') == 1
    assert "hx-swap-oob" not in whole
    Rollout.objects.update(state="PROVEN")
    Fence.objects.update(rollout=None)
    text = operator.get(address, HTTP_HX_REQUEST="true").content.decode()
    chip = text[text.index('id="subnet-chip"') :].split("</a>")[0]
    assert "hx-swap-oob" in chip
    assert "ready" in chip
    assert "rolling out" not in chip


def test_a_queued_rollout_can_be_cancelled(rollout, operator):
    answer = operator.post(reverse("console:rollout_cancel", args=[rollout.public_id]), follow=True)
    rollout.refresh_from_db()
    assert rollout.state == "CANCELLED"
    assert "before anything was placed" in answer.content.decode()


def test_one_that_has_begun_cannot_and_says_so(rollout, operator):
    Rollout.objects.update(state="PLACING")
    answer = operator.post(reverse("console:rollout_cancel", args=[rollout.public_id]), follow=True)
    assert "its file may already stand on a manager host" in answer.content.decode()


def test_an_unproven_one_is_looked_at_again(rollout, operator):
    Rollout.objects.update(state="UNPROVEN")
    operator.post(reverse("console:rollout_check", args=[rollout.public_id]))
    rollout.refresh_from_db()
    assert rollout.next_try_at is not None


def test_a_stuck_one_is_let_go_of_with_a_reason_only(rollout, operator):
    Rollout.objects.filter(pk=rollout.pk).update(state="STUCK")
    address = reverse("console:rollout_release", args=[rollout.public_id])
    assert "Say what you found" in operator.post(address, {"reason": " "}, follow=True).content.decode()
    assert Fence.objects.get().rollout_id == rollout.pk
    answer = operator.post(address, {"reason": "replaced the cable"}, follow=True)
    assert Fence.objects.get().rollout is None
    assert "A person let go of the subnet" in answer.content.decode()


def test_the_list_shows_all_and_an_empty_one_says_what_to_do(rollout, operator, client_of):
    text = operator.get(reverse("console:rollouts")).content.decode()
    assert rollout.public_id in text
    assert "queued" in text
    assert operator.get(reverse("console:rollouts") + "?page=nonsense").status_code == 200


def test_an_empty_list_says_what_to_do(db, olga, client_of):
    from inventory.models import Subnet

    Subnet.objects.create(name="lab")
    assert "No rollout yet" in client_of(olga).get(reverse("console:rollouts")).content.decode()


def test_one_that_is_not_there_is_not_found(site, operator):
    assert operator.get(reverse("console:rollout", args=["nonsense"])).status_code == 404


@pytest.mark.parametrize("state", Rollout.State.values)
def test_every_state_says_what_is_true_what_is_tried_and_what_to_do(rollout, operator, state):
    text = page_of(operator, rollout, state=state)
    words = meaning(state, revision=rollout.revision.number, parent=rollout.parent.number)
    for part, sentence in (("now", words.now), ("doing", words.doing), ("person", words.person)):
        assert sentence.strip()
        assert f'<dd id="meaning-{part}">{sentence}</dd>' in text


def test_placing_counts_the_hosts_that_hold_the_new_file(rollout, operator):
    HostOutcome.objects.filter(rollout=rollout, host__name="m2").update(placed_at=timezone.now())
    assert "1 host so far" in page_of(operator, rollout, state="PLACING")


def test_a_released_rollout_does_not_ask_for_a_person_any_more(rollout, operator):
    text = page_of(operator, rollout, state="STUCK", released_at=timezone.now())
    assert "A person has let go of the subnet." in text
    assert "each step could make it worse" not in text


def test_what_waits_to_be_confirmed_counts_down_and_is_kept_by_a_button(rollout, operator, auditor):
    until = timezone.now() + timedelta(minutes=4, seconds=30)
    fields = {"state": "PROVEN", "finished_at": timezone.now(), "confirm_within_s": 300, "confirm_by": until}
    text = page_of(operator, rollout, **fields)
    assert re.search(r"Confirm it within 4 min (2[5-9]|30) s, or it is taken back\.", text)
    assert f"the table of revision {rollout.parent.number} goes out again" in text
    assert 'id="rollout-poller"' in text
    assert "Look whether everything works, then confirm it." in text
    assert "/confirm/" in text
    assert "/confirm/" not in page_of(auditor, rollout)
    address = reverse("console:rollout_confirm", args=[rollout.public_id])
    assert auditor.post(address).status_code == 404
    assert operator.get(address).status_code == 405
    operator.post(address, {"reason": "looked at srv-001"})
    rollout.refresh_from_db()
    assert rollout.confirmed_at is not None
    text = page_of(operator, rollout)
    assert 'id="confirmed"' in text
    assert 'id="to-confirm"' not in text
    assert 'id="rollout-poller"' not in text


def test_after_its_time_it_says_that_it_is_taken_back_and_why_not_yet(rollout, operator):
    late = timezone.now() - timedelta(seconds=1)
    fields = {"state": "PROVEN", "confirm_within_s": 60, "confirm_by": late, "not_rolled_back": "Frozen: audit."}
    text = page_of(operator, rollout, **fields)
    assert "Nobody confirmed it in time" in text
    assert "Frozen: audit." in text


def test_the_plan_page_offers_the_time_and_passes_it_on(site, operator):
    site.provider.move(site.provider.servers[4], None, site.inference)
    site.provider.observe()
    page = operator.get(reverse("console:plan"))
    assert "Take it back unless confirmed" in page.content.decode()
    drawn = page.context["drawn"]
    form = {"selection": "", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}
    operator.post(reverse("console:plan"), form | {"confirm_within": "15"})
    assert Rollout.objects.latest("pk").confirm_within_s == 900

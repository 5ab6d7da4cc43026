"""The drift pages: differences in words, put back, adopt, posture, coverage, and the alarm on every page."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from console import lamps
from deploy.models import Drift, Rollout, Watch
from partitions.models import StagedChange
from tests.console.drifted import ROGUE, drifted, everything, told, watch
from tests.console.test_lamps import SPRITE

DRIFT = "/drift/"


def page(client, address=DRIFT, status=200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def test_before_the_first_look_nothing_is_called_good(site, operator):
    text = page(operator)
    assert "Nothing was looked at yet" in text
    assert "Not known yet" in text
    assert "Nothing differs" not in text


def test_nothing_differs(site, operator):
    watch(site)
    text = page(operator)
    assert "Every file is the current revision" in text
    assert "lmc differs: 0 on m1, 1 on m2" in text
    assert "Put back revision" not in text


def test_an_old_look_is_not_believed(site, operator):
    watch(site)
    Watch.objects.update(checked_at=timezone.now() - timedelta(minutes=10))
    assert "what is below may be old" in page(operator)


def test_every_kind_is_told_with_its_cause(site, operator, auditor):
    everything(site)
    for client in (operator, auditor):
        text = page(client)
        for words in ("rogue SM", "isolation lost", "table differs", "takeover", "SM roles", "manager host", "option"):
            assert words in text
        assert "Somebody wrote another file there" in text
        assert "It was not there any more." in text


@pytest.mark.parametrize("address", ["/board/", "/servers/", "/audit/", "/rollouts/", "/drift/", "/probes/"])
def test_an_alarm_stands_on_every_page(site, operator, address):
    told(site, "ROGUE_SM", ROGUE, f"Port {ROGUE} at leaf 0x1 port 5 runs a subnet manager.")
    text = page(operator, address)
    assert 'role="alert"' in text
    assert "Rogue SM. No rollout starts." in text  # the subnet's lamp says so too
    assert f"Port {ROGUE} at leaf 0x1 port 5 runs a subnet manager. No rollout starts." in text


def test_no_alarm_for_strangers_and_none_for_smaller_things(site, operator, charlie, client_of):
    drifted(site)
    assert "No rollout starts" not in page(operator)
    told(site, "ROGUE_SM", ROGUE, "Port x runs a subnet manager.")
    assert ROGUE not in page(client_of(charlie), status=404)
    assert "runs a subnet manager" not in page(client_of(charlie), status=404)


def test_one_click_puts_back(site, operator):
    drifted(site)
    watch(site)
    answer = operator.post(reverse("console:drift_put_back"), {"reason": "ticket 9"})
    rollout = Rollout.objects.latest("pk")
    assert answer.url == reverse("console:rollout", args=[rollout.public_id])
    assert (rollout.revision, rollout.reason) == (rollout.parent, "ticket 9")
    assert page(operator, answer.url)
    assert "drift is not judged while it runs" in page(operator)


def test_a_refusal_stands_on_the_page(site, operator):
    told(site, "ROGUE_SM", ROGUE, "Port x runs a subnet manager.")
    answer = operator.post(reverse("console:drift_put_back"))
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "Rogue SM: Port x runs a subnet manager." in text
    assert f'hx-get="{reverse("console:drift")}"' in text  # it asks again where a GET is answered


def test_a_file_is_shown_as_text_and_as_opensm_reads_it(site, operator):
    text = page(operator, reverse("console:difference", args=[drifted(site).public_id]))
    assert "srv-005" in text
    assert "too, as full members." in text
    assert "ALL makes every such port of the fabric a full member of byhand (0x0abc)" in text
    assert "+byhand=0x0abc" in text
    assert "Adopt as staged changes" in text


def test_a_file_that_opensm_rejects_offers_no_adoption(site, operator):
    row = drifted(site, b"no partition file\n")
    text = page(operator, reverse("console:difference", args=[row.public_id]))
    assert "every port becomes a full member of Default" in text
    assert "Adopt as staged" not in text


def test_a_missing_file_has_a_page_too(site, operator):
    row = told(
        site, "FILE", "m2", "Manager host m2: its partition file is missing.", host="m2", digest="", missing=True
    )
    assert "No bytes of the file on m2 are kept" in page(operator, reverse("console:difference", args=[row.public_id]))


def test_adopting_stages_and_says_what_is_left(site, operator):
    row = drifted(site)
    address = reverse("console:drift_adopt", args=[row.public_id])
    text = operator.post(address, {"reason": "r"}, follow=True).content.decode()
    assert "srv-005 joins training." in text
    assert "Keyword ALL in byhand (0x0abc) cannot be staged." in text
    assert StagedChange.objects.count() == 2
    row.refresh_from_db()
    assert row.adopted_digest == row.facts["digest"]


def test_what_cannot_be_adopted_is_refused_with_the_reason(site, operator):
    row = drifted(site, b"no partition file\n")
    answer = operator.post(reverse("console:drift_adopt", args=[row.public_id]))
    assert answer.status_code == 409
    assert "There is nothing to adopt: put back." in answer.content.decode()


def test_auditors_see_no_buttons(site, auditor):
    row = everything(site)
    for address in (DRIFT, reverse("console:difference", args=[row.public_id])):
        text = page(auditor, address)
        text = re.sub(r'<button type="button" class="what".*?</button>', "", text)  # what explains a word
        assert "<button" not in text.split('<main id="content"')[1].replace('class="note-close"', "")


def test_what_was_never_told_has_no_page(site, operator):
    row = told(site, "HOST", "m2", "x")
    Drift.objects.filter(pk=row.pk).update(opened_at=None)
    page(operator, reverse("console:difference", args=[row.public_id]), status=404)


def test_switching_needs_a_reason(site, operator):
    watch(site)
    address = reverse("console:drift_restoring")
    assert operator.post(address, {"enabled": "yes", "reason": ""}).status_code == 409
    assert operator.post(address, {"enabled": "yes", "reason": "nights"}).status_code == 302
    assert Watch.objects.get().restores_alone
    assert "Switch it off" in page(operator)
    operator.post(address, {"enabled": "no"})
    assert not Watch.objects.get().restores_alone


def test_look_now_makes_the_watch_due(site, operator):
    row = watch(site)
    Watch.objects.filter(pk=row.pk).update(next_at=timezone.now() + timedelta(hours=1))
    operator.post(reverse("console:drift_look"))
    row.refresh_from_db()
    assert row.next_at <= timezone.now()


def test_the_page_needs_few_queries(site, operator, django_assert_max_num_queries):
    everything(site)
    with django_assert_max_num_queries(14):
        page(operator)


def test_every_kind_has_a_lamp_of_its_own_that_goes_out():
    kinds = Drift.Kind.values
    assert len({lamps.drift(kind, is_over=False).word for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert lamps.drift(kind, is_over=False) is not lamps.UNKNOWN
        assert f'id="{lamps.drift(kind, is_over=False).shape}"' in SPRITE.read_text()
        assert lamps.drift(kind, is_over=True).colour is lamps.Colour.IDLE
    assert lamps.answer("unknown") is lamps.UNKNOWN
    assert lamps.drifting(count=0, is_alarm=False, is_seen=False) is lamps.UNKNOWN

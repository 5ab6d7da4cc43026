"""Activity by its filters, and as a file: all that the page shows and nothing of others or of the provider's people."""

import csv
import io
import json
import re
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from audit.models import Event
from people.models import User
from portal import own_partitions
from portal.activity import files
from portal.models import TenantEvent


def rows(client, busy, **asked):
    answer = client.get(busy.address("activity_export", "csv"), asked)
    assert answer.status_code == 200, answer.content
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def shown(client, busy, **asked):
    return client.get(busy.address("activity"), asked).content.decode()


def test_what_and_who_narrow_the_page_and_stand_in_its_form_and_links(busy, client):
    text = shown(client, busy, what="partitions", who=busy.seats["max"].person.public_id)
    assert "created partition eval" in text
    assert "declined the request" not in text
    assert '<option value="partitions" selected>' in text
    assert f'<option value="{busy.seats["max"].person.public_id}" selected>Max</option>' in text
    query = f"what=partitions&amp;who={busy.seats['max'].person.public_id}"
    assert busy.address("activity_export", "csv") + "?" + query in text
    text = shown(client, busy, who="provider")
    assert "declined the request" in text
    assert "created partition eval" not in text
    assert '<span class="strong">Max</span>' not in text
    assert '<span class="strong">the operator</span>' in text


def test_pages_and_the_fragment_go_on_with_the_filters(busy, client, monkeypatch):
    monkeypatch.setattr("portal.activity.found.page.__kwdefaults__", {"behind": "", "size": 1})
    text = shown(client, busy, what="partitions")
    assert 'href="?what=partitions&amp;behind=' in text
    assert f'hx-get="{busy.address("activity")}?what=partitions"' in text
    behind = text.partition('href="?what=partitions&amp;behind=')[2][:64]
    older = shown(client, busy, what="partitions", behind=behind)
    assert "created partition eval" in older
    assert "renamed partition" not in older
    assert 'href="?what=partitions">' in older


def test_moments_are_meant_in_the_persons_zone(busy, client):
    User.objects.filter(pk=busy.seats["max"].person.pk).update(time_zone="Asia/Tokyo")
    here = timezone.now().astimezone(ZoneInfo("Asia/Tokyo"))
    soon, before = (here + timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M"), here - timedelta(minutes=2)
    assert "No event matches" in shown(client, busy, since=soon)
    text = shown(client, busy, since=before.strftime("%Y-%m-%dT%H:%M"), until=soon)
    assert "created partition eval" in text
    assert "From (Asia/Tokyo)" in text
    assert "No event matches" in shown(client, busy, until=before.strftime("%Y-%m-%dT%H:%M"))


def test_the_fragment_says_its_zone_too(busy, client):
    text = client.get(busy.address("activity"), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "times in UTC" in text


def test_an_empty_result_says_so_and_how_to_go_on(busy, client):
    text = shown(client, busy, what="tokens")
    assert "No event matches" in text
    assert "Widen the filter, or clear it." in text
    assert "Nothing has happened yet" not in text


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"what": "servers"}, "Nothing of that kind is told here"),
        ({"who": "nobody"}, "Nobody of yours is known by that"),
        ({"since": "yesterday"}, "names no moment"),
    ],
)
def test_what_cannot_be_understood_is_said_and_no_file_is_made_of_it(busy, client, asked, sentence):
    text = shown(client, busy, **asked)
    assert sentence in text
    assert "created partition eval" in text
    answer = client.get(busy.address("activity_export", "json"), asked)
    assert answer.status_code == 400
    assert sentence in answer.content.decode()


def test_somebody_of_others_is_answered_like_nobody(busy, client):
    texts = []
    for who in (busy.seats["bruno"].person.public_id, busy.provider.olga.public_id, "x"):
        answer = client.get(busy.address("activity_export", "csv"), {"who": who})
        texts.append((answer.status_code, answer.content))
    assert len(set(texts)) == 1


def test_files_hold_what_the_page_shows_in_both_forms(busy, client):
    found = rows(client, busy)
    told = [f"{row['who']} {row['words']} {row['about']}" for row in found]
    assert "Max created partition eval" in told
    assert "the operator declined the request for 2 more servers for Acme" in told
    stage = next(row for row in found if row["action"] == "partitions:member:stage")
    assert stage["details"] == "from training to inference"
    assert all(row["at"].endswith("+00:00") for row in found)
    answer = client.get(busy.address("activity_export", "json"), {"what": "partitions"})
    assert answer["Content-Disposition"] == 'attachment; filename="activity-acme.json"'
    whole = json.loads(answer.content)
    assert whole["filters"] == {"what": "partitions"}
    assert whole["is_cut"] is False
    assert {one["kind"] for one in whole["events"]} == {"partitions"}
    assert [one["id"] for one in whole["events"]] == [row["id"] for row in found if row["kind"] == "partitions"]


def test_files_hold_no_number_no_name_of_the_provider_and_nothing_of_others(busy, client):
    for form in ("csv", "json"):
        text = client.get(busy.address("activity_export", form)).content.decode()
        for word in ("canary", "Bruno", "Olga", "olga", "acme.", busy.provider.bert.public_id, '"number"', "prev"):
            assert word not in text, word
        assert busy.provider.olga.public_id not in text
        own = set(TenantEvent.objects.visible_to(busy.seats["max"].person).values_list("hash", flat=True))
        assert set(re.findall(r"[0-9a-f]{64}", text)) <= own


def test_no_cell_is_a_formula(busy, client):
    busy.seats["max"].person.first_name = "=1+1"
    busy.seats["max"].person.save()
    own_partitions.create(seat=busy.seats["max"], subnet=busy.provider.subnet, title="more")
    made = next(row for row in rows(client, busy) if row["about"] == "more")
    assert made["who"] == "'=1+1"


def test_a_file_is_bounded_and_says_that_it_was_cut(busy, client, monkeypatch):
    whole = rows(client, busy)
    monkeypatch.setattr(files, "MOST", 3)
    answer = client.get(busy.address("activity_export", "json"))
    assert answer["Content-Disposition"] == 'attachment; filename="activity-acme-newest-3.json"'
    cut = json.loads(answer.content)
    assert cut["is_cut"] is True
    assert [one["id"] for one in cut["events"][1:]] == [row["id"] for row in whole[:2]]


def test_that_a_file_was_taken_is_told_to_the_tenant_and_to_no_other(busy, client):
    User.objects.filter(pk=busy.seats["max"].person.pk).update(time_zone="Asia/Tokyo")
    rows(client, busy, what="partitions", since="2026-01-01")
    event = Event.objects.latest("number")
    assert (event.action, event.tenant_key) == ("audit:trail:export", busy.acme.public_id)
    assert event.after["filters"]["what"] == "partitions"
    assert event.after["filters"]["since"].startswith("2025-12-31T15:00:00")
    assert "exported the activity of Acme" in shown(client, busy, what="evidence")


def test_files_are_english_whoever_asks(busy, client):
    User.objects.filter(pk=busy.seats["max"].person.pk).update(language="ru")
    assert "the operator" in {row["who"] for row in rows(client, busy)}


def test_another_form_is_no_page(busy, client):
    before = Event.objects.count()
    assert client.get(busy.address("activity_export", "xlsx")).status_code == 404
    assert Event.objects.count() == before

"""Times in the person's zone, UTC on hover, and what they type read in it; exports, the API and files in UTC."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone, translation

from audit import standing, watch
from audit.models import Event
from console.review import moment
from fabricui.templatetags.page import exact, in_the_readers_time
from people import operations
from people.actor import actor_of
from people.models import User
from people.moments import in_zone, marked
from people.said import said
from portal.words import Why, sentence
from tests.api.callers import Caller
from tests.audit.conftest import own_anchors
from tests.words.test_languages import rendered

__all__ = ["own_anchors"]

FAR, SHIFTING = "Asia/Vladivostok", "America/New_York"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


def in_her_zone(olga, client_of, zone, language="en"):
    User.objects.filter(pk=olga.pk).update(time_zone=zone, language=language)
    return client_of(User.objects.get(pk=olga.pk))


@pytest.mark.parametrize(
    ("zone", "utc", "local"),
    [
        (FAR, "2026-12-01 14:30 UTC", "2026-12-02 00:30 +10"),
        (FAR, "2026-12-01 14:30:15 UTC", "2026-12-02 00:30:15 +10"),
        (SHIFTING, "2026-11-01 05:30 UTC", "2026-11-01 01:30 EDT"),
        (SHIFTING, "2026-11-01 06:30 UTC", "2026-11-01 01:30 EST"),  # the same hour once more
        (SHIFTING, "2026-03-08 07:00 UTC", "2026-03-08 03:00 EDT"),  # 2 o'clock there was none
        ("UTC", "2026-12-01 14:30 UTC", "2026-12-01 14:30 UTC"),
    ],
)
def test_a_sentence_tells_its_moment_in_the_readers_zone(zone, utc, local):
    with timezone.override(zone):
        assert in_zone(f"Since {utc}, and more.") == f"Since {local}, and more."


def test_a_moment_in_a_sentence_has_utc_on_hover_and_the_rest_is_escaped():
    with timezone.override(FAR):
        told = marked("<b> was let go at 2026-12-01 14:30 UTC. 2026-13-40 14:30 UTC is none.")
    assert told == (
        '&lt;b&gt; was let go at <time datetime="2026-12-01T14:30:00+00:00" title="2026-12-01 14:30 UTC">'
        "2026-12-02 00:30 +10</time>. 2026-13-40 14:30 UTC is none."
    )


def test_a_russian_sentence_does_so_too():
    english = "Acme was let go at 2026-12-01 14:30 UTC. Create a new tenant instead."
    with translation.override("ru"), timezone.override(FAR):
        assert said(english) == "Работа с Acme завершена 2026-12-02 00:30 +10. Создайте нового арендатора."
        assert 'title="2026-12-01 14:30 UTC">2026-12-02 00:30 +10</time>' in in_the_readers_time(english)
        assert rendered("{{ it|told }}", it=english) == in_the_readers_time(english)
        at = datetime(2026, 12, 1, 14, 30, tzinfo=UTC)
        assert "2026-12-02 00:30:00 +10" in said(sentence(Why.QUOTA, until=at))


def test_an_hour_that_comes_twice_can_be_told_apart():
    with timezone.override(SHIFTING):
        texts = [exact(datetime(2026, 11, 1, hour, 30, tzinfo=UTC)) for hour in (5, 6)]
    assert "01:30:00 EDT" in texts[0]
    assert "01:30:00 EST" in texts[1]


class TestTyped:
    def test_a_moment_is_read_in_the_persons_zone(self):
        with timezone.override(FAR):
            assert moment("2026-12-01T14:30") == datetime(2026, 12, 1, 4, 30, tzinfo=UTC)
            assert moment("2026-12-01") == datetime(2026, 11, 30, 14, tzinfo=UTC)
            assert moment("2026-12-01T14:30Z") == datetime(2026, 12, 1, 14, 30, tzinfo=UTC)
            assert moment("2026-12-01T14:30", zone=UTC) == datetime(2026, 12, 1, 14, 30, tzinfo=UTC)

    @pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-02", 24)])
    def test_a_day_is_as_long_as_it_was_there(self, day, hours):
        with timezone.override(SHIFTING):
            assert moment(day, is_end=True) - moment(day) == timedelta(hours=hours)

    def test_beyond_all_calendars_is_no_moment(self):
        for zone in (FAR, SHIFTING):
            with timezone.override(zone):
                assert moment("9999-12-31", is_end=True) is None
                assert {moment("0001-01-01T00:00"), moment("9999-12-31T23:59")} & {None}

    @pytest.mark.parametrize("zone", [FAR, SHIFTING])
    def test_the_pages_say_which_zone_they_mean(self, olga, client_of, zone):
        browser = in_her_zone(olga, client_of, zone)
        page = browser.get(reverse("console:audit"), {"since": "nonsense"}).content.decode()
        assert f"From ({zone})" in page
        assert f"To ({zone})" in page
        assert f"times in {zone}" in page
        assert f"2026-12-01T14:30; {zone} is meant." in page
        assert "UTC)" not in page

    def test_the_audit_trail_is_filtered_by_the_persons_day(self, olga, client_of):
        operations.set_theme(person=olga, theme="DARK", actor=actor_of(olga))
        at = Event.objects.latest("number").at
        for zone in (FAR, SHIFTING):
            browser = in_her_zone(olga, client_of, zone)
            day = at.astimezone(ZoneInfo(zone)).date()
            first = Event.objects.order_by("number").first().number
            assert first in shown(browser, since=f"{day - timedelta(days=1)}", until=f"{day}")
            assert first not in shown(browser, since=f"{day + timedelta(days=1)}")
            just_before = (at - timedelta(minutes=90)).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M")
            assert first in shown(browser, since=just_before)
            assert first not in shown(browser, until=just_before)


def shown(browser, **query):
    return [event.number for event in browser.get(reverse("console:audit"), query).context["page"].events]


class TestMachines:
    def test_exports_are_utc_with_an_offset(self, olga, client_of):
        browser = in_her_zone(olga, client_of, FAR, "ru")
        address = reverse("console:audit_export", args=["csv"])
        body = b"".join(browser.get(address, {"since": "2000-01-01"}).streaming_content).decode()
        moments = [row["at"] for row in csv.DictReader(io.StringIO(body))]
        assert moments
        assert all(one.endswith(("Z", "+00:00")) for one in moments)

    def test_the_printed_trail_is_utc_and_says_so(self, olga, client_of):
        browser = in_her_zone(olga, client_of, FAR)
        since = "2026-01-01T10:00"
        page = browser.get(reverse("console:audit_export", args=["print"]), {"since": since}).content.decode()
        assert "times in UTC" in page
        assert "since “2026-01-01 00:00:00 UTC”" in page
        assert "+10" not in page
        assert Event.objects.latest("number").after["filters"]["since"].startswith("2026-01-01T00:00:00")

    @override_settings(SITE_TIME_ZONE=SHIFTING)
    def test_the_api_is_utc_whatever_the_sites_and_the_persons_zone(self, ada):
        User.objects.filter(pk=ada.pk).update(time_zone=FAR)
        ada.refresh_from_db()
        operations.set_theme(person=ada, theme="DARK", actor=actor_of(ada))
        answer = Caller(ada).get("audit/events")
        assert answer.status_code == 200
        moments = ISO.findall(answer.content.decode())
        assert moments
        assert all(one.endswith(("Z", "+00:00")) for one in moments)


def test_how_the_trail_stands_is_told_in_the_persons_zone(olga, client_of, own_anchors):
    operations.set_theme(person=olga, theme="DARK", actor=actor_of(olga))
    watch.every_hour()
    watch.every_minute()
    found = standing.standing(now=timezone.now())
    assert found.state is standing.State.VERIFIED
    local = found.at.astimezone(ZoneInfo(FAR))
    page = in_her_zone(olga, client_of, FAR).get(reverse("console:audit")).content.decode()
    assert f"at {local:%Y-%m-%d %H:%M} +10" in page  # on hover already
    assert f"{found.at:%Y-%m-%d %H:%M} UTC" not in page
    assert f"to {found.up_to}, {local:%H:%M}" in page

"""The review pages: the timeline by its address, one event, exports, one thing's story, from drag to proof."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from audit import review, standing, watch
from audit.models import Event, TrailCheck
from console.review import flat, moment
from deploy import table_history, tables
from deploy.models import Rollout, RolloutStep
from inventory.models import Port
from partitions import operations
from tests.audit.conftest import own_anchors
from tests.conftest import _without_triggers

__all__ = ["own_anchors"]


def read(browser, name, *arguments, **query) -> str:
    answer = browser.get(reverse(f"console:{name}", args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode()


def shown(browser, query) -> list[int]:
    return [event.number for event in browser.get(f"/audit/?{query}").context["page"].events]


@pytest.fixture
def told(site):
    """A day: looks at the fabric before and after a move with its reason, a discarded change, a rename."""
    provider = site.provider
    keep(provider.observe())
    operations.stage_move(
        server=provider.servers[0], source=site.training, target=site.inference, actor=provider.olga, reason="ticket 7"
    )
    rollout = provider.roll_out(provider.olga, reason="faster answers")
    provider.settle(rollout)
    keep(provider.observe())
    provider.move(provider.servers[5], None, site.training, by=provider.otto)
    operations.rename_partition(partition=site.storage, name="scratch", actor=provider.otto)
    return rollout


def keep(observation):
    table_history.keep(observation, fabric=tables.fabric(observation), processes={})
    return observation


class TestTimeline:
    def test_filters_by_the_address(self, site, operator):
        provider = site.provider
        assert shown(operator, "") == list(range(Event.objects.count(), 0, -1))[:50]
        assert len(shown(operator, "action=partitions:partition:create")) == 4
        assert shown(operator, f"subject=server:{provider.servers[0].public_id}") == shown(operator, "subject=srv-001")
        assert len(shown(operator, "subject=srv-001")) == 1
        today = timezone.now().date().isoformat()
        assert len(shown(operator, f"since={today}&until={today}")) == min(50, Event.objects.count())
        # The rows may be two minutes old: those of the site are a copy, made of a copy (tests/remembered.py).
        minute = (timezone.now() - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M")
        assert shown(operator, f"until={minute}") == []
        assert "No event matches" in operator.get("/audit/?since=2999-01-01").content.decode()
        rollout = Rollout.objects.get()
        of_rollout = Event.objects.filter(number__in=shown(operator, f"rollout={rollout.public_id}"))
        assert {event.subject_kind for event in of_rollout} == {"rollout", "revision"}
        assert {event.subject_key for event in of_rollout} == {rollout.public_id, rollout.revision.public_id}
        tenant = shown(operator, f"tenant={provider.acme.public_id}")
        assert {Event.objects.get(number=number).tenant_key for number in tenant} == {provider.acme.public_id}

    @pytest.mark.parametrize(
        "query",
        [
            "since=nonsense", "before=99999", "action=nonsense", "subject=:", "until=2026-13-45", "until=9999-12-31",
            "text=" + "a" * 60_000, "actor=" + "a" * 60_000, "subject=" + "a" * 60_000, "rollout=none", "before=x",
            "before=1~2026-01-01", "since=2026-01-01&before=7", "since=0001-01-01T00:00%2B14:00", "tenant=none",
            "after=1", "after=99999999999999999999",
        ],
    )  # fmt: skip
    def test_a_filter_that_makes_no_sense_breaks_nothing(self, site, operator, query):
        assert operator.get(f"/audit/?{query}").status_code == 200

    def test_what_was_not_understood_is_said(self, site, operator):
        assert "names no moment" in read(operator, "audit", since="yesterday")
        assert "is no place in the trail" in read(operator, "audit", before="x")

    def test_pages_keep_their_filter(self, site, operator, monkeypatch):
        monkeypatch.setattr(review, "PAGE", 50)
        for number in range(60):
            operations.create_partition(
                subnet=site.provider.subnet, tenant=None, name=f"p{number}", actor=site.provider.olga
            )
        first = operator.get("/audit/?action=partitions:partition:create")
        older = first.context["page"].older
        assert f"action=partitions%3Apartition%3Acreate&amp;before={older}" in first.content.decode()
        second = shown(operator, f"action=partitions:partition:create&before={older}")
        assert len(second) == 14

    def test_text_looks_no_further_than_it_says(self, site, operator, monkeypatch):
        monkeypatch.setattr(review, "SEARCHED", 5)
        text = read(operator, "audit", text="created subnet")
        assert "Look further back" in text
        assert "Looked back to" in text

    def test_an_event_shows_before_and_after(self, site, operator):
        text = read(operator, "audit", action="partitions:member:stage")
        assert "staged a change of" in text
        assert "<dt>partitions</dt>" in text
        assert "<ins>" in text

    def test_one_request_s_events_are_linked(self, site, operator):
        operator.post("/partitions/", {"tenant": "", "name": "eval", "pkey": ""})
        event = Event.objects.latest("number")
        assert event.request_id
        assert shown(operator, f"request={event.request_id}") == [event.number]

    def test_no_filter_asks_more_queries_for_more_events(self, site, operator, django_assert_max_num_queries):
        with django_assert_max_num_queries(25):
            operator.get("/audit/?action=deploy:")


@pytest.mark.usefixtures("own_anchors")
class TestChain:
    def test_it_stands_in_the_head_of_the_review_pages_with_the_hash(self, site, auditor):
        for page in ("audit", "as_of"):
            text = read(auditor, page)
            assert text.count("trail not checked yet") == 2
            assert Event.objects.latest("number").hash[:12] in text

    @pytest.mark.parametrize("page", ["board", "rollouts", "servers", "managers", "drift", "partitions", "audit"])
    def test_it_stands_in_the_head_of_every_page(self, site, operator, auditor, page):
        watch.every_minute()
        number = TrailCheck.objects.get(kind="whole").checked_to
        for browser in (operator, auditor):
            text = read(browser, page)
            assert 'id="trail-chip"' in text
            assert "trail verified" in text
            assert f"to {number}, " in text

    def test_strangers_do_not_see_it(self, bob, client_of):
        assert "trail-chip" not in client_of(bob).get("/").content.decode()

    @pytest.mark.parametrize(
        ("trouble", "age", "word"),
        [("", timedelta(hours=1), "trail verified"), ("", timedelta(hours=4), "trail check late"),
         ("cannot", timedelta(), "trail not checked"), ("edited", timedelta(), "trail broken")],
    )  # fmt: skip
    def test_it_says_what_the_scheduled_check_found(self, site, auditor, trouble, age, word):
        watch.every_minute()
        standing.keep("whole", now=timezone.now() - age, trouble=trouble, sentence="Event 3.", checked_to=7)
        assert word in read(auditor, "servers")

    def test_a_page_left_open_shows_it_anew_with_what_it_polls(self, site, operator):
        watch.every_minute()
        standing.keep("newest", now=timezone.now(), trouble="edited", sentence="Event 3 was edited.")
        answer = operator.get(reverse("console:drift"), headers={"hx-request": "true"}).content.decode()
        assert 'id="trail-chip"' in answer
        assert "trail broken" in answer

    @pytest.mark.parametrize(
        "sql",
        [
            "UPDATE audit_event SET reason = 'x' WHERE number = (SELECT MAX(number) - 1 FROM audit_event)",
            "DELETE FROM audit_event WHERE number = (SELECT MAX(number) - 2 FROM audit_event)",
            "DELETE FROM audit_event WHERE number > (SELECT MAX(number) - 2 FROM audit_event)",
            "DELETE FROM audit_event",
        ],
    )
    def test_a_broken_end_is_told_on_every_page(self, site, auditor, sql):
        with _without_triggers(connection), connection.cursor() as cursor:
            cursor.execute(sql)
        for page in ("audit", "as_of"):
            text = read(auditor, page)
            assert text.count("trail broken") == 2  # in the head of the page too
            assert 'role="alert"' in text


class TestEvent:
    def test_all_of_it_with_its_place_in_the_chain(self, told, auditor):
        event = Event.objects.get(action="partitions:partition:rename")
        text = read(auditor, "audit_event", event.number)
        assert "<del>storage</del>" in text
        assert "<ins>scratch</ins>" in text
        assert event.hash in text
        assert event.previous_hash in text
        assert "as it was written" in text
        assert reverse("console:audit_event", args=[event.number - 1]) in text

    def test_an_altered_one_says_so(self, told, auditor):
        with _without_triggers(connection), connection.cursor() as cursor:
            cursor.execute("UPDATE audit_event SET actor_name = 'Nobody' WHERE number = 3")
        assert "altered" in read(auditor, "audit_event", 3)
        assert "altered" not in read(auditor, "audit_event", 4)

    @pytest.mark.parametrize("number", [0, 999_999, 2**80])
    def test_one_that_is_not_there(self, site, auditor, number):
        assert auditor.get(f"/audit/events/{number}/").status_code == 404

    def test_values_are_flat(self):
        assert flat({"a": {"b": 1, "c": [1, 2]}, "d": None}) == {"a.b": 1, "a.c": [1, 2], "d": None}
        assert flat(None) == {}
        assert flat("word") == {"value": "word"}


class TestExports:
    def body(self, browser, form, **query) -> str:
        answer = browser.get(reverse("console:audit_export", args=[form]), query)
        assert answer.status_code == 200
        return b"".join(answer.streaming_content).decode() if answer.streaming else answer.content.decode()

    def test_json_lines_with_the_hashes(self, told, auditor, ada):
        count = Event.objects.count()
        head, *events = [json.loads(line) for line in self.body(auditor, "jsonl").splitlines()]
        assert [event["number"] for event in events] == list(range(1, count + 2))
        assert events[-1]["action"] == "audit:trail:export"
        assert events[-1]["actor_key"] == ada.public_id
        assert events[-1]["hash"] == head["head"]["hash"] == Event.objects.latest("number").hash
        *_, end = [json.loads(line) for line in self.body(auditor, "jsonl", actor="Olga").splitlines()]
        assert end["events"] > 3

    def test_csv_has_no_formula(self, told, auditor):
        from audit.actions import Action
        from tests.audit.events import record_one

        record_one(action=Action.SUBNET_FREEZE, reason='=HYPERLINK("http://x")')
        record_one(action=Action.SUBNET_FREEZE, reason="@SUM(A1)")
        rows = list(csv.DictReader(io.StringIO(self.body(auditor, "csv", action="inventory:subnet:freeze"))))
        assert [row["reason"] for row in rows] == ['\'=HYPERLINK("http://x")', "'@SUM(A1)"]
        assert all(len(row["hash"]) == 64 for row in rows)

    def test_print(self, told, auditor):
        text = self.body(auditor, "print", subject="srv-001")
        assert "ticket 7" in text
        assert Event.objects.latest("number").hash in text
        assert "<script" not in text

    @pytest.mark.parametrize("form", ["jsonl", "csv", "print"])
    def test_each_is_an_event_with_its_filter(self, told, auditor, ada, form):
        before = Event.objects.count()
        self.body(auditor, form, actor="Olga", since="2020-01-01")
        event = Event.objects.get(number=before + 1)
        assert (event.action, event.actor_key) == ("audit:trail:export", ada.public_id)
        assert event.after == {
            "format": form, "filters": {"actor": "Olga", "since": "2020-01-01T00:00:00.000000Z"}
        }  # fmt: skip

    def test_what_is_refused_leaves_no_event(self, told, auditor):
        before = Event.objects.count()
        assert auditor.get(reverse("console:audit_export", args=["xml"])).status_code == 404
        assert auditor.get(reverse("console:audit_export", args=["csv"]), {"since": "x"}).status_code == 400
        assert auditor.head(reverse("console:audit_export", args=["csv"])).status_code == 405
        assert Event.objects.count() == before

    def test_it_leaves_in_pieces_under_asgi(self, told, ada):
        """A plain iterator would be collected whole before the first byte."""
        from asgiref.sync import async_to_sync
        from django.test import AsyncClient

        async def first_piece():
            browser = AsyncClient()
            await browser.aforce_login(ada, backend="allauth.account.auth_backends.AuthenticationBackend")
            answer = await browser.get(reverse("console:audit_export", args=["jsonl"]))
            assert answer.is_async
            return [piece async for piece in answer.streaming_content]

        pieces = async_to_sync(first_piece)()
        assert len(pieces) >= 3
        assert json.loads(pieces[0])["fabricui_trail"] == 1


class TestOneThing:
    def test_a_port_s_story(self, told, site, auditor):
        port = Port.objects.filter(hca__server=site.provider.servers[0]).first()
        text = read(auditor, "port_history", port.guid)
        assert "staged a change of srv-001" in text
        assert "ticket 7" in text
        assert "joined: inference (0x1b07) (full); left: training (0x2c41)" in text
        assert "Olga made revision 3" in text
        assert "0xac41 at index 1" in text
        assert "0x9b07 at index 1" in text
        assert reverse("console:rollout_proof", args=[told.public_id]) in text
        assert "srv-006" not in text

    def test_a_p_key_s_story(self, told, site, auditor):
        text = read(auditor, "pkey_history", "0x1b07")
        assert "created partition inference" in text
        port = Port.objects.filter(hca__server=site.provider.servers[0]).first()
        assert f"joined: srv-001 {port.guid} (full)" in text
        assert f"The fabric showed 0x1b07 held by: {port.guid}" in text
        assert "renamed partition" in read(auditor, "pkey_history", "0x0100")

    def test_pages_go_on_where_a_source_stopped(self, told, site, auditor, monkeypatch):
        from console import history

        port = Port.objects.filter(hca__server=site.provider.servers[0]).first().guid
        whole = [(entry.at, entry.title) for entry in history.of_port(site.provider.subnet, port).entries]
        assert len(whole) > 5
        for name in ("MOST_EVENTS", "MOST_REVISIONS", "MOST_LOOKS"):
            monkeypatch.setattr(history, name, 1)
        found, until = [], None
        for _ in range(40):
            page = history.of_port(site.provider.subnet, port, until=until)
            found += [(entry.at, entry.title) for entry in page.entries]
            until = page.older
            if until is None:
                break
        assert until is None
        assert found == whole

    @pytest.mark.parametrize(
        "address", ["ports/0x0002c90400ffffff", "ports/x", "pkeys/0x7ffe", "pkeys/0xffff", "pkeys/x"]
    )
    def test_what_nobody_knows_is_not_here(self, told, auditor, address):
        assert auditor.get(f"/audit/{address}/").status_code == 404

    def test_they_are_linked_from_the_port_s_and_the_partition_s_page(self, told, site, auditor):
        server = site.provider.servers[0]
        port = Port.objects.filter(hca__server=server).first()
        assert reverse("console:port_history", args=[port.guid]) in read(auditor, "server", server.public_id)
        assert reverse("console:pkey_history", args=["0x2c41"]) in read(auditor, "partition", site.training.public_id)


class TestFromDragToProof:
    def test_every_part_with_its_event(self, told, site, auditor):
        RolloutStep.objects.create(rollout=told, at=timezone.now(), state="PROVEN", text="All ports hold their keys.")
        evidence = {"counts": {"ports": 14, "proven": 14}, "not_checked": ["Links were not probed."]}
        Rollout.objects.filter(pk=told.pk).update(read_back=evidence)
        text = read(auditor, "rollout_proof", told.public_id)
        port = Port.objects.filter(hca__server=site.provider.servers[0]).first()
        assert "from training to inference" in text
        assert "ticket 7" in text
        assert port.guid in text
        assert "faster answers" in text
        assert told.revision.digest in text
        assert "as in the trail" in text
        assert "All ports hold their keys." in text
        assert "14" in text
        assert "The board has shown this revision since" in text
        for action in (
            "deploy:revision:propose",
            "deploy:rollout:start",
            "deploy:rollout:proven",
            "partitions:member:settle",
        ):
            event = Event.objects.filter(action=action).latest("number")
            assert reverse("console:audit_event", args=[event.number]) in text, action
        assert reverse("console:rollout_proof", args=[told.public_id]) in read(auditor, "rollout", told.public_id)

    def test_an_altered_revision_is_told(self, told, auditor):
        with _without_triggers(connection), connection.cursor() as cursor:
            cursor.execute("UPDATE deploy_revision SET digest = 'x' WHERE id = %s", [told.revision_id])
        assert "not as in the trail" in read(auditor, "rollout_proof", told.public_id)

    def test_one_that_runs_and_one_that_is_not_there(self, site, auditor):
        site.provider.move(site.provider.servers[0], site.training, site.inference)
        rollout = site.provider.roll_out(site.provider.olga)
        text = read(auditor, "rollout_proof", rollout.public_id)
        assert "Nothing was read back." in text
        assert auditor.get("/audit/rollouts/none/").status_code == 404


@pytest.mark.parametrize(
    ("text", "is_end", "expected"),
    [
        ("2026-12-01", False, "2026-12-01T00:00:00+00:00"),
        ("2026-12-01", True, "2026-12-02T00:00:00+00:00"),
        ("2026-12-01T14:30", True, "2026-12-01T14:30:00+00:00"),
        ("2026-12-01T14:30:15.5+02:00", False, "2026-12-01T12:30:15.500000+00:00"),
    ],
)
def test_moments_of_an_address(text, is_end, expected):
    found = moment(text, is_end=is_end)
    assert found is not None
    assert found.isoformat() == expected

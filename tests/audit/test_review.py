"""A page of the trail: every filter, every way through it, and that each page comes from an index."""

import json
import random
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from audit import exporting, review, verifier
from audit.actions import Action
from audit.models import Event
from audit.review import Asked, BadCursor
from audit.values import Actor, ActorKind, Subject
from tests.audit.events import OLGA, record_one
from tests.audit.test_list import trail  # noqa: F401  the same few events

pytestmark = pytest.mark.django_db


def numbers(asked: Asked, **columns) -> list[int]:
    return [event.number for event in review.page(asked, **columns).events]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, [4, 3, 2, 1]),
        ({"actor": "olga-id"}, [2]),
        ({"actor": "OLG"}, [2]),
        ({"actor": "nobody"}, []),
        ({"action": "deploy:rollout:start"}, [2]),
        ({"action": "deploy:"}, [4, 2]),
        ({"subject": "rollout:r1"}, [4, 2]),
        ({"subject": "rollout:"}, [4, 2]),
        ({"subject": "s1"}, [3]),
        ({"subject": "srv-001"}, [3]),
        ({"subject": "server:r1"}, []),
        ({"subjects": ("rollout:r1", "server:s1")}, [4, 3, 2]),
        ({"subjects": ("rollout:r1", "server:s1"), "subject": "server:s1"}, [3]),
        ({"subjects": ("rollout:r1",), "subject": "server:s1"}, []),
        ({"tenant": "acme-id"}, [3]),
        ({"rollout": "r1"}, [4, 2]),
        ({"rollout": "r1", "subjects": ("server:s1",)}, [4, 3, 2]),
        ({"text": "TRAINING"}, [3]),
        ({"text": "revision"}, [4, 2]),
        ({"text": "%"}, []),
        ({"action": "deploy:", "actor": "olga-id"}, [2]),
        ({"action": "deploy:", "tenant": "acme-id"}, []),
    ],
)
def test_each_filter(trail, filters, found):  # noqa: F811
    assert numbers(Asked(**filters)) == found


def test_a_request_and_a_time(trail):  # noqa: F811
    second, third = Event.objects.get(number=2), Event.objects.get(number=3)
    assert numbers(Asked(since=second.at, until=third.at)) == [2]
    assert numbers(Asked(since=second.at, action="deploy:")) == [4, 2]
    assert numbers(Asked(request="none")) == []


@pytest.fixture
def long_trail(db) -> None:
    """120 events of three people on four things."""
    dice = random.Random(9)  # noqa: S311  the same trail each time
    with transaction.atomic():
        for number in range(120):
            name = dice.choice(["Olga", "Otto", "Ömer"])
            record_one(
                action=dice.choice([Action.MEMBER_STAGE, Action.ROLLOUT_START, Action.ROLLOUT_PROVEN]),
                actor=Actor(kind=ActorKind.PERSON, key=name.lower(), name=name),
                subject=Subject(kind="server", key=f"s{dice.randrange(4)}", label="srv"),
                tenant_key=dice.choice(["", "acme"]),
                reason=f"ticket {number % 7}",
            )


ASKED = [
    Asked(),
    Asked(action="deploy:"),
    Asked(actor="o"),
    Asked(actor="ömer"),
    Asked(text="ticket 3"),
    Asked(tenant="acme", action="deploy:"),
    Asked(subject="s2", text="TICKET 1"),
]


def by_hand(asked: Asked) -> list[int]:
    """What the filters mean, said once more without any index."""

    def is_wanted(event: Event) -> bool:
        return (
            event.action.startswith(asked.action)
            and asked.actor.casefold() in event.actor_name.casefold()
            and event.tenant_key in ({asked.tenant} if asked.tenant else {"", "acme"})
            and event.subject_key in ({asked.subject} if asked.subject else {f"s{n}" for n in range(4)})
            and asked.text.casefold() in event.reason.casefold()
        )

    return [event.number for event in Event.objects.order_by("-number") if is_wanted(event)]


@pytest.mark.parametrize("searched", [4_000, 9])
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_pages_hold_each_event_once_there_and_back(long_trail, monkeypatch, asked, searched):
    monkeypatch.setattr(review, "SEARCHED", searched)
    expected = by_hand(asked)
    assert expected
    seen, cursor = [], ""
    for _ in range(80):
        page = review.page(asked, before=cursor, size=7)
        seen += [event.number for event in page.events]
        assert len(page.events) <= 7
        last, cursor = page, page.older
        if not cursor:
            break
    assert seen == expected
    back = [event.number for event in last.events]
    cursor = last.newer
    for _ in range(80):
        if not cursor:
            break
        page = review.page(asked, after=cursor, size=7)
        back = [event.number for event in page.events] + back
        cursor = page.newer
    assert back == expected


def test_pages_by_time_hold_each_event_once(long_trail):
    middle = Event.objects.get(number=60).at
    seen, cursor = [], ""
    while True:
        page = review.page(Asked(until=middle), before=cursor, size=7)
        seen += [event.number for event in page.events]
        cursor = page.older
        if not cursor:
            break
    assert seen == list(range(59, 0, -1))
    after = f"50~{Event.objects.get(number=50).at.isoformat()}"
    page = review.page(Asked(until=middle), after=after, size=7)
    assert [event.number for event in page.events] == list(range(57, 50, -1))


@pytest.mark.parametrize("cursor", ["x", "1~", "1~yesterday", "5~2026-01-01", "-3", "9" * 40])
def test_a_cursor_that_is_none_is_refused(trail, cursor):  # noqa: F811
    asked = Asked(until=Event.objects.get(number=3).at) if "~" in cursor else Asked()
    with pytest.raises(BadCursor):
        review.page(asked, before=cursor)


@pytest.mark.parametrize(
    "asked",
    [*ASKED[:3], Asked(subject="server:s1"), Asked(subject="server:"), Asked(subject="srv"), Asked(request="r"),
     Asked(tenant="acme"), Asked(action="deploy:rollout:start")],
    ids=str,
)  # fmt: skip
def test_no_page_sorts_or_reads_the_whole_trail(long_trail, asked):
    with CaptureQueriesContext(connection) as captured:
        review.page(asked)
    for query in captured.captured_queries:
        if "audit_event" not in query["sql"] or query["sql"].startswith("WITH"):
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = " ".join(row[-1] for row in cursor.fetchall())
        assert "USE TEMP B-TREE" not in plan, (query["sql"], plan)
        assert "INDEX" in plan, (query["sql"], plan)


def test_the_different_values_of_a_column(trail):  # noqa: F811
    assert review.distinct("actor_name") == ["Bob", "FabricUI", "Olga"]
    with pytest.raises(ValueError, match="No index"):
        review.distinct("reason")


class TestExport:
    def test_a_part_goes_up_to_the_export_s_own_event(self, trail):  # noqa: F811
        asked = Asked(action="deploy:")
        export = exporting.begin_export(asked=asked, form="jsonl", actor=OLGA)
        record_one()
        assert (export.number, export.action, export.actor_key) == (5, "audit:trail:export", "olga-id")
        assert export.after == {"format": "jsonl", "filters": {"action": "deploy:"}}
        head, *events, end = [json.loads(line) for line in "".join(exporting.lines(asked, export)).splitlines()]
        assert head["filters"] == {"action": "deploy:"}
        assert head["head"] == {"number": 5, "hash": export.hash}
        assert [event["number"] for event in events] == [2, 4]
        assert all(verifier.content_hash(event) == event["hash"] for event in events)
        assert end == {"events": 2}

    def test_the_whole_is_what_the_stand_alone_verifier_reads(self, trail, tmp_path):  # noqa: F811
        export = exporting.begin_export(asked=Asked(), form="jsonl", actor=OLGA)
        path = tmp_path / "trail.jsonl"
        path.write_text("".join(exporting.lines(Asked(), export)))
        program = [sys.executable, verifier.__file__, str(path), "--json"]
        said = subprocess.run(program, capture_output=True, text=True, check=False)
        assert json.loads(said.stdout)["events"] == 5, said.stderr
        path.write_text(path.read_text().replace("more training", "more tea"))
        said = subprocess.run(program, capture_output=True, text=True, check=False)
        assert json.loads(said.stdout)["broken_at"] == 3

    def test_only_known_forms(self, trail):  # noqa: F811
        with pytest.raises(ValueError, match="no form"):
            exporting.begin_export(asked=Asked(), form="xml", actor=OLGA)
        assert Event.objects.count() == 4

    def test_pieces_miss_nothing(self, long_trail):
        for asked in ASKED:
            found = [event.number for piece in review.oldest_first(asked, until_number=100, step=7) for event in piece]
            assert found == [number for number in reversed(by_hand(asked)) if number <= 100]


def test_what_was_asked_is_told_as_text(trail):  # noqa: F811
    at = Event.objects.get(number=1).at
    told = Asked(actor="olga", since=at, until=at + timedelta(days=1)).told()
    assert set(told) == {"actor", "since", "until"}
    assert told["since"].endswith("Z")

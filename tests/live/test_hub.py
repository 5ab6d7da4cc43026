"""The open pages of one web process, with a real broker: who hears what, and what is left when they go."""

import asyncio
import time
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from live import channel
from live import hub as hubs
from live.hints import PROVIDER, Hint, Kind, tenant_audience
from live.hub import Hub
from live.stream import ALL, AWAY, GONE, HERE, MOST_WAITING, Stream
from tests.live.conftest import Page, until

ACME, BERT = tenant_audience("acme1"), tenant_audience("bert1")


def hint(public_id, kind=Kind.ROLLOUT):
    return frozenset({Hint(kind, public_id)})


@pytest.fixture
def hub(broker, settings):
    settings.REDIS_URL = broker.url
    return Hub(broker.url, channel.name())


def publish(batch):
    return asyncio.to_thread(channel.publish, batch)


def test_two_audiences_never_hear_each_others_hints(hub):
    async def play():
        provider, acme, bert = Page(hub, {PROVIDER}), Page(hub, {ACME}), Page(hub, {BERT})
        both = Page(hub, {ACME, BERT})
        await until(lambda: all("here" in page.events for page in (provider, acme, bert, both)))
        await publish({PROVIDER: hint("r1"), ACME: hint("ours", Kind.SERVER)})
        await publish({PROVIDER: hint("r2"), BERT: hint("theirs", Kind.SERVER)})
        await until(lambda: "r2" in provider.heard[-1] and "theirs" in bert.heard[-1] and "theirs" in both.heard[-1])
        await until(lambda: "ours" in acme.heard[-1])
        said = {name: "".join(page.heard) for name, page in {"a": acme, "b": bert, "p": provider, "x": both}.items()}
        for page in (provider, acme, bert, both):
            await page.close()
        return said

    said = asyncio.run(play())
    assert "theirs" not in said["a"]
    assert "r1" not in said["a"]
    assert "ours" not in said["b"]
    assert "r2" not in said["b"]
    assert "ours" not in said["p"]
    assert "theirs" not in said["p"]
    assert "ours" in said["x"]
    assert "theirs" in said["x"]
    assert "r1" not in said["x"]
    assert 'event: hints\ndata: [{"kind":"server","id":"ours"}]\n\n' in said["a"]


def test_when_the_pages_go_nothing_is_left(hub):
    async def play():
        pages = [Page(hub, {PROVIDER}) for _ in range(20)]
        await until(lambda: all(page.events for page in pages))
        assert len(hub.streams) == 20
        for page in pages:
            await page.close()
        await asyncio.sleep(0)
        assert hub._tasks == []
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*left, return_exceptions=True)
        return len(hub.streams), hub._tasks, hub._told_at

    assert asyncio.run(play()) == (0, [], {})


def test_a_page_that_comes_after_all_have_gone_is_served_anew(hub):
    async def play():
        for name in ("r1", "r2"):
            page = Page(hub, {PROVIDER})
            await until(lambda page=page: "here" in page.events)
            await publish({PROVIDER: hint(name)})
            await until(lambda page=page, name=name: name in page.heard[-1])
            await page.close()

    asyncio.run(play())


def test_a_page_learns_that_it_may_have_missed_something_and_only_then(hub, monkeypatch):
    monkeypatch.setattr(hubs, "SLACK_S", 0.0)

    async def play():
        first = Page(hub, {PROVIDER})
        await until(lambda: "here" in first.events)
        assert first.events[:2] == ["here", "all"]  # nobody listened while it was on its way
        heard_since = time.monotonic()
        await until(lambda: time.monotonic() > heard_since + 1)
        calm = Page(hub, {PROVIDER}, unsure_s=0.0)
        await publish({PROVIDER: hint("r1")})
        await until(lambda: "hints" in calm.events)
        late = Page(hub, {PROVIDER}, unsure_s=0.9)  # its page was rendered before that
        other = Page(hub, {ACME}, unsure_s=0.9)  # nothing happened to them
        await until(lambda: late.events[:2] == ["here", "all"] and other.events)
        await publish({ACME: hint("s1", Kind.SERVER)})
        await until(lambda: len(other.events) > 1)
        heard = calm.events, other.events
        for page in (first, calm, late, other):
            await page.close()
        return heard

    assert asyncio.run(play()) == (["here", "hints"], ["here", "hints"])


def test_a_page_that_reads_slowly_is_told_that_anything_may_have_changed():
    async def play():
        stream = Stream("k", frozenset({PROVIDER}))
        for number in range(MOST_WAITING + 1):
            stream.tell(f"{number}".encode())
        return await stream.next(), stream._waiting.qsize()

    assert asyncio.run(play()) == (ALL, 0)


@pytest.mark.parametrize("at", [0, MOST_WAITING], ids=["among what waits", "the one too many"])
def test_a_page_that_reads_slowly_still_hears_that_no_hint_comes(at):
    async def play():
        stream = Stream("k", frozenset({PROVIDER}))
        for number in range(MOST_WAITING + 1):
            stream.tell(AWAY if number == at else HERE if number == at - 1 else b"hint")
        return [await stream.next() for _ in range(stream._waiting.qsize())]

    assert asyncio.run(play()) == [AWAY, ALL]


def test_nothing_follows_the_end_of_a_stream():
    async def play():
        stream = Stream("k", frozenset({PROVIDER}))
        stream.tell(b"waits")
        stream.end(GONE)
        for _ in range(MOST_WAITING + 1):
            stream.tell(b"late")
        message = await stream.next()
        return message, stream.is_over_after(message), stream._waiting.qsize()

    assert asyncio.run(play()) == (GONE, True, 0)


def test_a_quiet_stream_says_that_it_lives(hub, monkeypatch):
    monkeypatch.setattr(hubs, "STILL_S", 0.05)

    async def play():
        page = Page(hub, {PROVIDER})
        await until(lambda: page.events.count("still") >= 2)
        beat = page.heard[-1]
        await page.close()
        return beat

    assert asyncio.run(play()) == ": still here\nevent: still\ndata: {}\n\n"


def test_the_broker_goes_and_comes_back_and_pages_are_told_the_truth(hub, broker, monkeypatch):
    monkeypatch.setattr(hubs, "RETRY_S", (0.05,))

    async def play():
        page = Page(hub, {PROVIDER})
        await until(lambda: "here" in page.events)
        await asyncio.to_thread(broker.stop)
        await until(lambda: page.events[-1] == "away")
        newcomer = Page(hub, {PROVIDER})
        await until(lambda: newcomer.events, 5)
        assert newcomer.events[0] == "away"
        await asyncio.to_thread(channel.publish, {PROVIDER: hint("unheard")})  # raises nothing
        await asyncio.to_thread(broker.start)
        await until(lambda: page.events[-2:] == ["here", "all"] and newcomer.events[-2:] == ["here", "all"])
        await publish({PROVIDER: hint("r9")})
        await until(lambda: "r9" in page.heard[-1] and "r9" in newcomer.heard[-1])
        await page.close()
        await newcomer.close()

    asyncio.run(play())


def test_a_broker_that_has_frozen_counts_as_away(hub, broker, monkeypatch):
    monkeypatch.setattr(hubs, "PING_S", 0.1)

    async def play():
        page = Page(hub, {PROVIDER})
        await until(lambda: "here" in page.events)
        broker.process.send_signal(19)  # SIGSTOP
        try:
            await until(lambda: page.events[-1] == "away", 10)
        finally:
            broker.process.send_signal(18)  # SIGCONT
        await until(lambda: page.events[-1] == "all")
        await page.close()

    asyncio.run(play())


def test_what_is_not_understood_may_be_anything(hub):
    async def play():
        page = Page(hub, {PROVIDER})
        await until(lambda: "here" in page.events)
        count = len(page.heard)
        hub._hear({"type": "message", "data": b'{"provider": [["a kind of tomorrow", ""]]}'})
        await until(lambda: len(page.heard) > count)
        said = page.events[-1]
        await page.close()
        return said

    assert asyncio.run(play()) == "all"


class TestRights:
    @pytest.fixture
    def sessions(self, client_of, olga, ada, alice):
        return {person: client_of(person).session.session_key for person in (olga, ada, alice)}

    def play(self, hub, sessions, audiences, then):
        """Open a page for each person, do `then`, check the rights once; return how each page ended, None if open."""

        @async_to_sync
        async def played():
            pages = {who: Page(hub, audiences[who], key) for who, key in sessions.items()}
            await until(lambda: all(page.events for page in pages.values()))
            before = time.monotonic()
            from asgiref.sync import sync_to_async

            await sync_to_async(then)()
            await hub.check_rights()
            await publish({PROVIDER: hint("r5"), ACME: hint("s5", Kind.SERVER)})
            await until(lambda: all(page.is_over or "5" in page.heard[-1] for page in pages.values()))
            assert time.monotonic() - before < 10
            ended = {who: page.events[-1] if page.is_over else None for who, page in pages.items()}
            for page in pages.values():
                await page.close()
            return ended

        return played()

    def test_a_session_that_is_over_ends_its_stream_and_no_other(self, hub, sessions, olga, ada):
        from django.contrib.sessions.models import Session

        kept = {who: sessions[who] for who in (olga, ada)}
        ended = self.play(
            hub, kept, {who: {PROVIDER} for who in kept},
            lambda: Session.objects.filter(session_key=sessions[olga]).delete(),
        )  # fmt: skip
        assert ended == {olga: "gone", ada: None}

    @pytest.mark.parametrize(
        ("change", "end"),
        [
            ({"role": "NONE"}, "gone"),
            ({"is_active": False}, "gone"),
            ({"password": "another"}, "gone"),
            ({"sessions_ended_at": timezone.now() + timedelta(days=1)}, "gone"),
            ({"role": "OPERATOR"}, None),
            ({"theme": "DARK"}, None),
        ],
    )
    def test_what_became_of_a_person_is_seen(self, hub, sessions, olga, ada, change, end):
        from people.models import User

        kept = {who: sessions[who] for who in (olga, ada)}
        ended = self.play(
            hub, kept, {who: {PROVIDER} for who in kept}, lambda: User.objects.filter(pk=olga.pk).update(**change)
        )
        assert ended == {olga: end, ada: None}

    def test_a_tenants_person_who_gets_another_role_comes_again(self, hub, sessions, alice, acme):
        from people.models import User

        ours = {tenant_audience(acme.public_id)}
        ended = self.play(
            hub, {alice: sessions[alice]}, {alice: ours},
            lambda: User.objects.filter(pk=alice.pk).update(role="OPERATOR"),
        )  # fmt: skip
        assert ended == {alice: "again"}

    def test_when_rights_cannot_be_known_nobody_listens_on(self, hub, sessions, olga, monkeypatch):
        def fails(keys):
            raise RuntimeError("the database is away")

        monkeypatch.setattr(hubs, "audiences_by_session", fails)
        ended = self.play(hub, {olga: sessions[olga]}, {olga: {PROVIDER}}, lambda: None)
        assert ended == {olga: "again"}

    def test_rights_are_checked_by_itself(self, hub, monkeypatch):
        monkeypatch.setattr(hubs, "CHECK_S", 0.05)
        monkeypatch.setattr(hubs, "audiences_by_session", lambda keys: dict.fromkeys(keys, frozenset()))

        async def play():
            page = Page(hub, {PROVIDER})
            await until(lambda: page.is_over)
            return page.events[-1], len(hub.streams)

        assert asyncio.run(play()) == ("gone", 0)

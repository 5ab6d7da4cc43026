"""Pages in their reader's language and time; everything that is kept in English and in UTC."""

import re
from datetime import UTC, datetime

import pytest
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from audit.actions import Action
from audit.models import Event
from fabricui import api  # noqa: F401  the scopes come with it
from people import operations, scopes
from people.actor import actor_of
from people.errors import NoSuchLanguage, NoSuchTimeZone
from people.models import User
from people.said import candidates, compiled, in_language, patterns, said
from tests.console.conftest import settled_site
from tests.people import matrix
from tests.people.everything import everything
from tests.people.test_roles import ask

RUSSIAN = re.compile(r"[А-Яа-яЁё]")


def rendered(source, **context):
    return Template("{% load i18n page %}" + source).render(Context(context))


@pytest.mark.parametrize(
    ("count", "servers", "minutes"),
    [
        (1, "1 сервер", "1 минуту назад"),
        (2, "2 сервера", "2 минуты назад"),
        (5, "5 серверов", "5 минут назад"),
        (11, "11 серверов", "11 минут назад"),
        (21, "21 сервер", "21 минуту назад"),
    ],
)
def test_russian_plurals(count, servers, minutes):
    one = "{% blocktranslate count n=n %}{{ n }} server{% plural %}{{ n }} servers{% endblocktranslate %}"
    with translation.override("ru"):
        assert rendered(one, n=count) == servers
        at = timezone.now() - timezone.timedelta(minutes=count, seconds=5)
        assert minutes in rendered("{{ at|moment }}", at=at).replace("\xa0", " ")


def test_a_sentence_of_ours_is_recognised_with_its_values():
    english = "Rollout k3b9 holds the subnet: proven."
    assert said(english) == english
    with translation.override("ru"):
        assert said(english) == "Развёртывание k3b9 занимает подсеть: доказано."
        assert said("This server is called Bert.") == "This server is called Bert."
        assert said(["full", "limited", 7]) == ["полный", "ограниченный", 7]
        two = "FabricUI may roll out on this subnet, and no rollout is running. Something else."
        assert said(two).endswith("не развёртывается. Something else.")


def test_values_are_put_into_their_case_and_their_number():
    with translation.override("ru"):
        assert said("Puts revision 7 back, the master first, and reads every table again.").startswith(
            "Возвращает ревизию 7,"
        )
        assert said("Revision 8") == "Ревизия 8"
        assert said("21 port, limited") == "21 порт, ограниченный"
        assert said("2 of 5 ports, 1 down") == "2 из 5 портов, не работает: 1"
        assert said("3 proven, 1 in trouble") == "доказано: 3, с неполадками: 1"
        assert said("joined: a 0x1 (full), b 0x2 (limited)") == "вошли: a 0x1 (полный), b 0x2 (ограниченный)"


@pytest.mark.parametrize(
    ("english", "russian"),
    [
        ("srv-001 is staged to inference.", "Подготовлен перенос srv-001 в inference."),
        ("srv.a.b is staged to Unassigned.", "Подготовлен перенос srv.a.b в «Не распределено»."),
        ("22 servers are staged to inf. 3 were refused: a, b, c, ….",
         "Подготовлен перенос в inf: 22 сервера. Отказано (3): a, b, c, …."),
    ],
)  # fmt: skip
def test_no_value_takes_the_next_sentence_along(english, russian):
    with translation.override("ru"):
        assert said(f"{english} Nothing has reached the fabric.") == f"{russian} На фабрику ничего не попало."


def test_a_short_pattern_takes_no_sentence_of_somebody_elses():
    assert compiled("{n} of {m}", "{n:#} из {m}").fullmatch("2 of 5")
    assert not compiled("{n} of {m}", "{n:#} из {m}").fullmatch("the end of it")
    assert not compiled("{name} (full)", "{name:name} (полный)").fullmatch("a (limited), b (full)")
    assert compiled("{a} to {b}", "{a:names} в {b:names}").fullmatch("a, b to c")
    assert not compiled("{a} to {b}", "{a:names} в {b:names}").fullmatch("what it came to in the end")


def test_what_a_token_may_be_for_is_said_as_a_whole():
    """The rooms register these words in files whose other sentences stay English."""
    with translation.override("ru"):
        said_of = {scope.name: said(scope.words) for scope in scopes.every()}
    assert len(said_of) > 10
    assert {name: words for name, words in said_of.items() if re.search("[a-z]", words)} == {}


def test_a_look_up_tries_few_patterns():
    """However many there are: each stands under its rarest word."""
    _, index = patterns("ru")
    assert len(index.patterns) > 150
    assert len(index.wordless) <= 3
    text = "Rollout k3b9 holds the subnet: proven. The file of srv-001 is placed, and no port changes."
    assert len(set(candidates(text, index))) < len(index.patterns) / 10


def test_values_are_found_where_a_name_stands_twice():
    assert compiled("{a} and {a}.").fullmatch("x and x.")
    assert not compiled("{a} and {a}.").fullmatch("x and y.")
    assert in_language("", "ru") == ""


def test_a_browser_is_answered_in_its_language(db):
    page = Client(headers={"Accept-Language": "ru-RU,ru;q=0.9,en;q=0.5"}).get(reverse("account_login"))
    assert "Войти" in page.content.decode()
    assert page["Content-Language"] == "ru"
    assert "Accept-Language" in page["Vary"]
    assert '<html lang="ru"' in page.content.decode()
    again = Client().get(reverse("account_login"))  # the one before left nothing behind
    assert "Sign in" in again.content.decode()
    assert again["Content-Language"] == "en"


def test_a_persons_own_choice_goes_before_their_browsers(olga, client_of):
    browser = client_of(olga)
    answer = browser.post(reverse("set_language"), {"language": "ru", "next": "/board/"})
    assert answer.url == "/board/"
    assert "Часовой пояс" in browser.get(reverse("time_zone"), headers={"Accept-Language": "en"}).content.decode()
    assert browser.post(reverse("set_language"), {"language": "tlh"}).status_code == 400
    assert Event.objects.get(action=Action.PERSON_LANGUAGE).after == {"language": "ru"}


def test_times_are_in_the_persons_zone_and_in_utc_on_hover(olga, client_of):
    browser = client_of(olga)
    browser.post(reverse("time_zone"), {"time_zone": "Europe/Moscow"})
    assert User.objects.get(pk=olga.pk).time_zone == "Europe/Moscow"
    browser.post(reverse("time_zone"), {"time_zone": "Mars/Olympus"})
    assert User.objects.get(pk=olga.pk).time_zone == "Europe/Moscow"
    at = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)
    with timezone.override("Europe/Moscow"):
        text = rendered("{{ at|exact }}", at=at)
    assert '<time datetime="2026-12-02T14:00:00+00:00" title="2026-12-02 14:00:00 UTC">2026-12-02 17:00:00 MSK' in text


def test_what_does_not_exist_is_refused(olga):
    with pytest.raises(NoSuchLanguage):
        operations.set_language(person=olga, language="tlh", actor=actor_of(olga))
    with pytest.raises(NoSuchTimeZone):
        operations.set_time_zone(person=olga, time_zone="Mars/Olympus", actor=actor_of(olga))
    assert not Event.objects.filter(action__in=[Action.PERSON_LANGUAGE, Action.PERSON_TIME_ZONE]).exists()


def test_what_a_russian_operator_does_is_kept_in_english(db, client_of):
    site = settled_site()
    olga = site.provider.olga
    operations.set_language(person=olga, language="ru", actor=actor_of(olga))
    before = Event.objects.latest("number").number
    fields = {
        "server": site.provider.servers[0].public_id,
        "source": site.training.public_id,
        "target": site.inference.public_id,
    }
    browser = client_of(User.objects.get(pk=olga.pk))
    assert RUSSIAN.search(browser.get(reverse("console:board")).content.decode())
    assert browser.post(reverse("console:board_move"), fields).status_code < 400
    made = Event.objects.filter(number__gt=before)
    assert made.exists()
    for event in made:
        assert not RUSSIAN.search(repr([event.reason, event.before, event.after, event.subject_label])), event


def test_every_page_opens_in_russian(db, client_of):
    site = everything()
    admin = site.people["admin"]
    client = client_of(admin)
    english = {}
    names = [
        name for (name, verb), row in matrix.rows().items() if verb == "GET" and not name.startswith(("openid", "api:"))
    ]
    for name in names:
        english[name] = ask(client, name, "GET", site).status_code
    User.objects.filter(pk=admin.pk).update(language="ru")
    for name in names:
        page = ask(client, name, "GET", site)
        assert page.status_code == english[name], name
        if (
            page.status_code == 200
            and page.get("Content-Type", "").startswith("text/html")
            and b"<html" in page.content
        ):
            text = page.content.decode()
            assert '<html lang="ru"' in text or name == "console:audit_export", name
            assert RUSSIAN.search(text), name

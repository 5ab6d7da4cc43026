"""Whatever language an operator reads, OpenSM gets the same bytes and the trail the same English."""

import pytest
from django.urls import reverse

from audit.models import Event
from deploy.models import Rollout, RolloutStep
from people.models import User
from tests.console.conftest import settled_site
from tests.people.test_roles import undone
from tests.words.test_languages import RUSSIAN

LANGUAGES = ("en", "ru")
PLAN = reverse("console:plan")


def words_since(number):
    """What the trail says of everything after event `number`, without ids and hashes."""
    shown = []
    for event in Event.objects.filter(number__gt=number).order_by("number"):
        shown.append(
            (event.action, event.actor_name, event.subject_kind, event.reason, str(event.before), str(event.after))
        )
    return shown


def planned_in(language, client_of):
    """Plan and start a rollout in the console as a person of that language: the file, the trail, the story."""
    site = settled_site()
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    site.provider.observe()
    olga = site.provider.olga
    User.objects.filter(pk=olga.pk).update(language=language)
    newest = Event.objects.latest("number").number
    browser = client_of(User.objects.get(pk=olga.pk))
    page = browser.get(PLAN)
    assert bool(RUSSIAN.search(page.content.decode().partition("<main")[2])) == (language == "ru")
    drawn = page.context["drawn"]
    fields = {"selection": "mine", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}
    assert browser.post(PLAN, fields | {"reason": "ticket 7"}).status_code == 302
    rollout = Rollout.objects.latest("pk")
    steps = list(RolloutStep.objects.filter(rollout=rollout).values_list("text", flat=True))
    return bytes(rollout.revision.data), words_since(newest), steps


@pytest.mark.django_db
def test_the_planned_file_and_the_trail_know_no_language(client_of):
    said = {}
    for language in LANGUAGES:
        with undone():
            said[language] = planned_in(language, client_of)
    (english, trail, steps), (russian, other_trail, other_steps) = said["en"], said["ru"]
    assert russian == english
    assert [event[:4] for event in other_trail] == [event[:4] for event in trail]
    assert steps == other_steps
    assert trail
    assert not RUSSIAN.search(f"{other_trail} {other_steps}")

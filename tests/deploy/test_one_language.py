"""What is delivered to the manager hosts is the same bytes whatever language is active where the worker runs."""

import pytest
from django.utils import translation

from audit.models import Event
from deploy.models import RolloutStep
from tests.deploy.conftest import make_scene
from tests.people.test_roles import undone
from tests.words.test_languages import RUSSIAN


def delivered_in(language, clock):
    """A rollout planned and run in that language: the files of the hosts, and everything that was written down."""
    scene = make_scene(clock)
    with translation.override(language):
        rollout = scene.run(scene.begin())
    assert rollout.state == "PROVEN"
    told = list(RolloutStep.objects.values_list("text", flat=True))
    kept = [str(event) for event in Event.objects.values_list("reason", "before", "after")]
    return {host.name: host.file for host in scene.site.hosts}, told, " ".join([rollout.cause, *told, *kept])


@pytest.mark.django_db
def test_the_hosts_get_the_same_bytes_and_the_story_is_english(clock):
    found = {}
    for language in ("en", "ru"):
        with undone():
            found[language] = delivered_in(language, clock)
    (english, story, _), (russian, other_story, kept) = found["en"], found["ru"]
    assert english
    assert russian == english
    assert len(story) == len(other_story)
    assert not RUSSIAN.search(kept)

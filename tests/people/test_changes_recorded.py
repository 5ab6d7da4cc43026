"""Each form of the operators' and administrators' pages leaves its event, with who did it (tests/people/changes.py)."""

import re
from pathlib import Path

import pytest
from django.urls import reverse

from audit.actions import Action
from audit.models import Event
from tests.people import changes, matrix
from tests.people.everything import everything
from tests.people.test_roles import undone

TESTS = Path(__file__).resolve().parents[1]


def posted():
    """The addresses of these rooms that take a POST."""
    return {name for name, verb in matrix.rows() if verb == "POST" and name.startswith(changes.ROOMS)}


def test_every_form_is_in_one_of_the_lists():
    listed = [*changes.RECORDED, *changes.ELSEWHERE]
    assert sorted(listed) == sorted(posted())
    assert set(changes.RECORDED.values()) <= {action.value for action in Action}


@pytest.mark.django_db
def test_an_administrators_change_is_in_the_trail_with_their_name(client_of):
    site, wrong = everything(), []
    admin = site.people["admin"]
    client, more = client_of(admin), changes.forms(site)

    def post(name):
        form = {"reason": "because"} | site.forms.get(name, {}) | more.get(name, {})
        return client.post(reverse(name, args=site.arguments.get(name, [])), form)

    for name, action in changes.RECORDED.items():
        with undone():
            if name in changes.AFTER:
                post(changes.AFTER[name])
            before = Event.objects.latest("number").number
            status = post(name).status_code
            found = {(event.action, event.actor_key) for event in Event.objects.filter(number__gt=before)}
            if (action, admin.public_id) not in found:
                wrong.append(f"{name}: {status}, {sorted(found)} and not {action}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(changes.ELSEWHERE))
def test_the_test_elsewhere_is_there_and_posts(name):
    file, _, function = changes.ELSEWHERE[name].partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    found = re.search(rf"^( *)def {function}\(.*?(?=^\1(?:def|class|@)|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{file} has no {function}"
    assert name.rpartition("_")[2].rpartition(":")[2] in found[0], f"{function} does not speak of {name}"

"""What is asked for again before it happens: everything after which files are placed, or may be."""

import pytest
from django.urls import reverse

from deploy.models import Rollout
from inventory.models import Subnet
from tests.console.test_plan_page import form


@pytest.fixture(autouse=True)
def asked(settings):
    settings.FRESH_LOGIN_MIN = 15


ACTIONS = {
    "roll out": ("console:plan", False),
    "put back": ("console:drift_put_back", False),
    "mode": ("console:qualification_mode", True),
    "sign": ("console:qualification_sign", True),
    "place": ("console:adoption_place", True),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_operator_shows_again_who_they_are(site, operator, name):
    address, of_subnet = ACTIONS[name]
    subnet = site.provider.subnet
    before = (Rollout.objects.count(), subnet.mode)
    url = reverse(address, args=[subnet.public_id] if of_subnet else [])
    answer = operator.post(url, {"mode": "OBSERVE", "reason": "ticket 9"})
    assert answer.status_code == 200
    assert "Is it still you?" in answer.content.decode()
    assert 'name="reason" value="ticket 9"' in answer.content.decode()
    assert (Rollout.objects.count(), Subnet.objects.get(pk=subnet.pk).mode) == before


def test_the_rollout_starts_once_it_is_shown(site, operator):
    provider = site.provider
    provider.olga.set_password("a long enough password")
    provider.olga.save()
    operator.force_login(provider.olga, backend="allauth.account.auth_backends.AuthenticationBackend")
    provider.move(provider.servers[0], site.training, site.inference)
    provider.observe()
    filled_in = {**form(operator.get(reverse("console:plan"))), "reason": "ticket 9"}
    began = Rollout.objects.count()
    assert "Is it still you?" in operator.post(reverse("console:plan"), filled_in).content.decode()
    answer = operator.post(reverse("console:plan"), {**filled_in, "fresh_password": "a long enough password"})
    assert Rollout.objects.count() == began + 1
    assert answer.url == reverse("console:rollout", args=[Rollout.objects.latest("pk").public_id])


def test_looking_is_not_asked_for(site, operator):
    for name in ("plan", "drift", "board"):
        assert "Is it still you?" not in operator.get(reverse(f"console:{name}")).content.decode()

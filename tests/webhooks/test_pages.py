"""Pages of webhooks: who sees and changes whose, what is refused, and the secret that is shown once."""

import pytest
from django.urls import reverse

from audit.models import Event
from audit.values import SYSTEM
from people.models import Tenant, User
from webhooks import operations, sealing
from webhooks.errors import TooManyEndpoints
from webhooks.models import Endpoint
from webhooks.terms import MOST_ENDPOINTS

pytestmark = pytest.mark.django_db
LIST = "/webhooks/"
FORM = {"name": "on-call", "url": "https://hooks.example.com/x", "kinds": ["stuck", "leak"]}


@pytest.fixture
def admin(client_of, db):
    return client_of(User.objects.create_user(username="boss", first_name="Boss", role="ADMIN"))


def test_an_administrator_adds_one_and_sees_its_secret_once(admin):
    page = admin.post(LIST, FORM)
    endpoint = Endpoint.objects.get()
    secret = sealing.opened(endpoint.secret)
    assert page.status_code == 201
    assert secret in page.content.decode()
    assert (endpoint.kinds, endpoint.tenant) == (["leak", "stuck"], None)
    for address in (LIST, reverse("webhooks:endpoint", args=[endpoint.public_id])):
        assert secret not in admin.get(address).content.decode()
        assert "hooks.example.com/x" not in admin.get(address).content.decode()
    event = Event.objects.latest("number")
    assert event.after == {"host": "hooks.example.com", "kinds": ["leak", "stuck"]}
    renewed = admin.post(reverse("webhooks:secret", args=[endpoint.public_id]))
    endpoint.refresh_from_db()
    assert sealing.opened(endpoint.secret) in renewed.content.decode()
    assert sealing.opened(endpoint.secret) != secret


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"url": "https://169.254.169.254/latest/meta-data/"}, "169.254.169.254 is an address of an inner network"),
        ({"url": "http://hooks.example.com/"}, "does not begin with https://"),
        ({"url": "https://user:pw@hooks.example.com/"}, "a user, a password"),
        ({"kinds": []}, "choose at least one"),
        ({"kinds": ["everything"]}, "choose at least one"),
        ({"name": ""}, "This field is required"),
        ({"url": "x" * 600}, "at most 500"),
    ],
)
def test_what_cannot_be_used_says_why_and_keeps_what_was_typed(admin, wrong, sentence):
    page = admin.post(LIST, {**FORM, **wrong})
    assert page.status_code == 422
    assert sentence in page.content.decode()
    assert not Endpoint.objects.exists()
    assert "pw@" not in "".join(str(event.after) for event in Event.objects.all())


def test_an_auditor_reads_and_changes_nothing(admin, ada, client_of):
    admin.post(LIST, FORM)
    endpoint = Endpoint.objects.get()
    auditor = client_of(ada)
    page = auditor.get(reverse("webhooks:endpoint", args=[endpoint.public_id]))
    assert page.status_code == 200
    assert "Remove it" not in page.content.decode()
    for step in ("test", "on", "off", "secret", "remove"):
        assert auditor.post(reverse(f"webhooks:{step}", args=[endpoint.public_id])).status_code == 404
    assert auditor.post(LIST, FORM).status_code == 404
    assert Endpoint.objects.count() == 1


def test_a_tenants_endpoint_is_its_administrators_alone(acme, alice, bob, charlie, olga, admin, client_of):
    endpoint, _ = operations.create_endpoint(**{**FORM, "kinds": ["rollout"]}, tenant=acme, actor=SYSTEM)
    other = Tenant.objects.create(name="Other", slug="other")
    foreign, _ = operations.create_endpoint(**{**FORM, "kinds": ["rollout"]}, tenant=other, actor=SYSTEM)
    address = reverse("webhooks:endpoint", args=[endpoint.public_id])
    assert client_of(alice).get(address).status_code == 200
    for person in (bob, charlie, olga):
        assert client_of(person).get(address).status_code == 404
    assert admin.get(address).status_code == 404
    assert client_of(alice).get(reverse("webhooks:endpoint", args=[foreign.public_id])).status_code == 404
    test = reverse("webhooks:test", args=[endpoint.public_id])
    assert client_of(bob).post(test).status_code == 404
    assert client_of(alice).post(test).status_code == 302
    assert endpoint.deliveries.count() == 1
    assert Event.objects.latest("number").tenant_key == acme.public_id
    assert "on-call" not in admin.get(LIST).content.decode().partition("<form")[0]


def test_a_tenant_can_ask_for_nothing_of_the_operators(acme):
    endpoint, _ = operations.create_endpoint(
        **{**FORM, "kinds": ["rollout", "leak", "rogue_sm", "trail"]}, tenant=acme, actor=SYSTEM
    )
    assert endpoint.kinds == ["rollout"]


def test_there_are_only_so_many(db):
    for _ in range(MOST_ENDPOINTS):
        operations.create_endpoint(**FORM, actor=SYSTEM)
    with pytest.raises(TooManyEndpoints):
        operations.create_endpoint(**FORM, actor=SYSTEM)


def test_buttons_and_their_events(admin):
    admin.post(LIST, FORM)
    endpoint = Endpoint.objects.get()

    def press(step):
        return admin.post(reverse(f"webhooks:{step}", args=[endpoint.public_id]), follow=True)

    assert "on its way" in press("test").content.decode()
    assert "told nothing any more" in press("off").content.decode()
    assert press("test").status_code == 409
    assert "Switch it on first" in press("test").content.decode()
    press("off")
    assert "from now on" in press("on").content.decode()
    press("on")
    assert press("remove").status_code == 200
    assert not Endpoint.objects.exists()
    actions = [event.action.rpartition(":")[2] for event in Event.objects.filter(action__startswith="webhooks:")]
    assert sorted(actions) == ["create", "remove", "switch-off", "switch-on", "test"]


def test_nothing_yet_says_what_to_do(admin, ada, client_of):
    assert "No webhook yet" in admin.get(LIST).content.decode()
    assert "An administrator can name a program" in client_of(ada).get(LIST).content.decode()


def test_it_asks_again_who_somebody_is(admin, settings):
    settings.FRESH_LOGIN_MIN = 15
    page = admin.post(LIST, FORM)
    assert page.status_code == 200
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/", "//evil.example/", "/\\evil.example/", "///evil.example/", "javascript:alert(1)",
        "evil.example", "/\t/evil.example/", "/" + "x" * 300, "",
    ],
)  # fmt: skip
def test_the_way_back_leads_to_no_other_site(admin, back):
    admin.post(LIST, FORM)
    its = reverse("webhooks:endpoint", args=[Endpoint.objects.get().public_id])
    text = admin.get(its, {"back": back}).content.decode()
    assert "evil.example" not in text.partition("<main")[2]
    assert 'name="back"' not in text
    assert admin.post(f"{its}off/", {"back": back}).url == its
    assert admin.post(f"{its}remove/", {"back": back}).url == LIST

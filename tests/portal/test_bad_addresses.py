"""Pages asked for what is no page: paths for ids, forms of nonsense. Refused, and never an error of ours.

The same for the API is tests/api/test_bad_bodies.py and schemathesis, for the registration door tests/inventory.
"""

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from audit.models import Event
from tests.people import matrix
from tests.people.everything import everything
from tests.people.test_roles import undone

pytestmark = pytest.mark.django_db

PATHS = (
    "..", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "..\\..\\manage.py", "\u202e", "a" * 2000, "159426394883489793",
    "-1", "0x" + "f" * 40,
)  # fmt: skip
NONSENSE = ("159426394883489793", "../../etc/passwd\u202e", "x" * 5000, "a\x00b")
FILES = ("../manage.py", "..%2fmanage.py", "%2e%2e/manage.py", "/etc/passwd", "..\\manage.py", "css/../../manage.py")


@pytest.fixture
def admin(client_of):
    """An administrator's browser, and everything that there is."""
    site = everything()
    return client_of(site.people["admin"]), client_of(site.people["owner"]), site


def _browsers(name, admin, owner):
    """Who may come that far: a tenant's pages are its people's."""
    return (owner,) if name.startswith("portal:") and "operator" not in name else (admin,)


def _address(name, arguments, at, trick):
    tried = [*arguments[:at], trick, *arguments[at + 1 :]]
    try:
        return reverse(name, args=tried)
    except (NoReverseMatch, UnicodeEncodeError):
        return None  # the address itself takes no such thing


def test_no_page_takes_a_path_for_an_id(admin):
    browser, owner, site = admin
    wrong, asked = [], 0
    for name, verb in matrix.rows():
        arguments = site.arguments.get(name, [])
        if name.startswith("api:") or verb != "GET":
            continue
        for at in range(len(arguments)):
            for address in filter(None, (_address(name, arguments, at, trick) for trick in PATHS)):
                for client in _browsers(name, browser, owner):
                    client.raise_request_exception = False
                    with undone():
                        answer = client.get(address)
                    asked += 1
                    if answer.status_code not in (400, 404) and not answer.get("Location", "").startswith("/"):
                        wrong.append((name, address[:80], answer.status_code))
    assert wrong == []
    assert asked > 150


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("root", ["/static/", "/", "/portal/"])
def test_no_file_is_reached_by_a_path(db, root, path):
    answer = Client(raise_request_exception=False).get(root + path)
    assert answer.status_code in (400, 404)
    assert b"DJANGO_SETTINGS_MODULE" not in answer.content


def test_no_form_of_nonsense_is_an_error_of_ours(admin):
    """Every field that a page's form has, with each of the values, all at once; nothing is done under a wrong name."""
    browser, owner, site = admin
    wrong, asked = [], 0
    for name, verb in matrix.rows():
        if name.startswith("api:") or verb != "POST":
            continue
        address = reverse(name, args=site.arguments.get(name, []))
        (client,) = _browsers(name, browser, owner)
        client.raise_request_exception = False
        cookies = client.cookies.output(header="")
        for value in NONSENSE:
            fields = dict.fromkeys((*site.forms.get(name, {}), "reason", "name", "next", "server", "kinds"), value)
            with undone():
                told = client.post(address, fields).status_code
            client.cookies.clear()
            client.cookies.load(cookies)
            asked += 1
            if told >= 500:
                wrong.append((name, value[:20], told))
    assert wrong == []
    assert asked > 250


def test_a_form_that_is_too_large_is_not_read(client, db, settings):
    """Fields without a file: 2.5 MB and 1000 of them are the most; the body as a whole has the web door's bound."""
    before = Event.objects.count()
    for fields in ({"login": "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)}, {f"f{at}": "" for at in range(1001)}):
        answer = client.post("/account/login/", fields)
        assert answer.status_code == 400
        assert b"xxxx" not in answer.content
    assert Event.objects.count() == before

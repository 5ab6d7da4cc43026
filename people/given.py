"""A password that an administrator made is known to two: its person chooses another before anything else.

Until then no page opens but that one, and no token of theirs is taken. Who comes from the OpenID provider has no
password here, and is asked for none.
"""

from allauth.account.internal.flows.login import get_authentication_records
from django.http import HttpRequest

from people.models import User


def is_owed(request: HttpRequest) -> bool:
    """Whether the signed-in person must choose a password before anything else. No query."""
    user = request.user
    if not isinstance(user, User) or not owes(user):
        return False
    return not any(one["method"] == "socialaccount" for one in get_authentication_records(request, user))


def owes(person: User) -> bool:
    """Whether the password of `person` is still the one that somebody else made."""
    return bool(person.must_change_password) and person.has_usable_password()

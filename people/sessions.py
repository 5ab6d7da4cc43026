"""How long a session lasts: never longer than settings.SESSION_HOURS, and settings.SESSION_IDLE_MIN without a person.

A page that asks again by itself is no person: only whole pages and what is posted count. Ending all of somebody's
sessions is one moment on their row, so nothing has to look for the sessions.
"""

from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor
from people.actor import person_subject
from people.models import User

BEGAN: Final = "began_at"
SEEN: Final = "seen_at"
SEEN_EVERY_S: Final = 60  # a click writes the session at most this often


@receiver(user_logged_in)
def began(request: HttpRequest, **_: Any) -> None:
    """Note when a session begins."""
    now = timezone.now().timestamp()
    request.session[BEGAN] = request.session[SEEN] = now


def why_over(request: HttpRequest) -> str:
    """Why the session of this request is over, in words; "" while it goes on."""
    user, now = request.user, timezone.now()
    assert isinstance(user, User)  # noqa: S101  the middleware asks for nobody else
    began_at = _moment(request.session.get(BEGAN))
    if user.sessions_ended_at is not None and (began_at is None or began_at <= user.sessions_ended_at):
        return "your sessions were ended"
    if began_at is not None and (now - began_at).total_seconds() > settings.SESSION_HOURS * 3600:
        return f"a session ends {settings.SESSION_HOURS} h after its login"
    seen_at = _moment(request.session.get(SEEN))
    if seen_at is not None and (now - seen_at).total_seconds() > settings.SESSION_IDLE_MIN * 60:
        return f"nothing was done for {settings.SESSION_IDLE_MIN} min"
    return ""


def touch(request: HttpRequest) -> None:
    """Note that the person is still there, unless it is only their page that asks."""
    now = timezone.now().timestamp()
    request.session.setdefault(BEGAN, now)  # a session from before this rule begins with it
    if SEEN not in request.session or (not _asks_by_itself(request) and now - request.session[SEEN] > SEEN_EVERY_S):
        request.session[SEEN] = now


def _asks_by_itself(request: HttpRequest) -> bool:
    """Whether a script of the page asks: htmx says so, and a browser says what is no going to a page."""
    told = request.headers
    return request.method == "GET" and (
        told.get("HX-Request") == "true"
        or told.get("Sec-Fetch-Mode", "navigate") != "navigate"
        or "text/event-stream" in told.get("Accept", "")
    )


@transaction.atomic
def end_this(request: HttpRequest, *, because: str) -> None:
    """End the session of this request, with its event."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101  as above
    request.session.flush()
    request.user = AnonymousUser()
    record(action=Action.SESSION_END, actor=SYSTEM, subject=person_subject(user), reason=because)


@transaction.atomic
def end_all(*, person: User, actor: Actor, reason: str = "") -> None:
    """End every session of `person`, wherever it is."""
    person.sessions_ended_at = timezone.now()
    person.save(update_fields=["sessions_ended_at"])
    record(
        action=Action.SESSION_END,
        actor=actor,
        subject=person_subject(person),
        after={"sessions_ended_at": person.sessions_ended_at},
        reason=reason,
    )


@transaction.atomic
def end_others(request: HttpRequest, *, person: User, actor: Actor, reason: str) -> None:
    """End every session of `person` but the one of this request, which begins anew."""
    end_all(person=person, actor=actor, reason=reason)
    began(request)


def _moment(stamp: object) -> datetime | None:
    return datetime.fromtimestamp(stamp, tz=UTC) if isinstance(stamp, int | float) else None

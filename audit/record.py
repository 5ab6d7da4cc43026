"""`record()`: the only door into the trail. `record_all()` is the same door for several events at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, IntegrityError, OperationalError, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from audit import keyring, nudge, outage
from audit.actions import Action
from audit.appending import Head, insert, locked_head, move_head
from audit.canonical import clean, plain, utc_text
from audit.errors import ChainMoved, KeyUnavailable, NotRecordable, OutsideTransaction, TrailUnwritable
from audit.models import Event
from audit.request_id import current_address, current_request_id
from audit.values import SYSTEM, Actor, Subject
from audit.verifier import CLOCK_STEP_S, code

# PostgreSQL: deadlock detected, serialization failure; lock not available, query canceled (somebody waited too long)
_PASSING: Final = {"40P01", "40001", "55P03", "57014"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What one event is to say; see `record`. Address and request are those of the moment it is drafted at."""

    action: Action
    actor: Actor
    subject: Subject
    before: object = None
    after: object = None
    reason: str = ""
    tenant_key: str = ""
    rollout_key: str = ""
    revision_key: str = ""
    request_id: str = field(default_factory=current_request_id)
    address: str = field(default_factory=current_address)


def record(
    *,
    action: Action,
    actor: Actor,
    subject: Subject,
    before: object = None,
    after: object = None,
    reason: str = "",
    tenant_key: str = "",
    rollout_key: str = "",
    revision_key: str = "",
    request_id: str = "",
) -> Event:
    """Append one event to the chain, in the transaction of the change it tells of.

    Make it the last statement of that transaction: it holds the head of the chain until the commit, and with it
    every other recording of the whole product. Several calls in a row are fine.
    `before` and `after` are whatever `audit.canonical.plain` can write down: the values that changed, never a
    secret. Names and labels are cut to their length, keys never are. `rollout_key` and `revision_key` are public ids;
    left out, they are those of a subject that is a rollout or a revision. Address and request are the current ones.

    Raises OutsideTransaction without an open transaction, NotRecordable for a value that is no plain text or
    number, ChainMoved if the database let another writer in between, and TrailUnavailable if the keys are missing or
    the database takes no event (after any of these nothing of the transaction may stay).
    """
    draft = Draft(
        action=action,
        actor=actor,
        subject=subject,
        before=before,
        after=after,
        reason=reason,
        tenant_key=tenant_key,
        rollout_key=rollout_key,
        revision_key=revision_key,
        request_id=request_id or current_request_id(),
    )
    return record_all([draft])[0]


def record_all(drafts: Sequence[Draft]) -> list[Event]:
    """Append an event for each of `drafts`, in their order; for the rest as `record`.

    The head is read once, and the events go into the database in one statement: for changes of many that share a
    transaction, such as the reports of a boot storm.
    """
    _require_transaction(transaction.get_connection())
    events = [_event(draft) for draft in drafts]
    if not events:
        return []
    try:
        head = locked_head()
        now = timezone.now()  # read under the lock, so that times rise with the numbers
        chained = list(events)
        if head.at is not None and now < head.at:
            # Clocks of several machines differ a little; one that falls back further is told, and then believed.
            if head.at - now < timedelta(seconds=CLOCK_STEP_S):
                now = head.at
            else:
                chained.insert(0, _clock_step(head.at, now))
        _append_all(chained, head, at=now)
    except KeyUnavailable as error:
        outage.note(str(error))
        raise
    except DatabaseError as error:
        if _is_passing(error):
            raise  # as it is: its cause says to the caller which race was lost
        raise _unwritable(error) from error
    transaction.on_commit(nudge.followers, robust=True)
    return events


def _event(draft: Draft) -> Event:
    subject = draft.subject
    return Event(
        action=draft.action.value,
        actor_kind=draft.actor.kind.value,
        actor_key=_key(draft.actor.key, "actor_key"),
        actor_name=_cut(draft.actor.name, "actor_name"),
        subject_kind=_key(subject.kind, "subject_kind"),
        subject_key=_key(subject.key, "subject_key"),
        subject_label=_cut(subject.label, "subject_label"),
        tenant_key=_key(draft.tenant_key, "tenant_key"),
        before=plain(draft.before, where="before"),
        after=plain(draft.after, where="after"),
        reason=clean(draft.reason),
        request_id=draft.request_id,
        address=draft.address,
        rollout_key=draft.rollout_key or (subject.key if subject.kind == "rollout" else ""),
        revision_key=draft.revision_key or (subject.key if subject.kind == "revision" else ""),
    )


def _append_all(events: Sequence[Event], head: Head, *, at: datetime) -> None:
    """Chain `events` to `head` in their order, move the head on with each, and insert them."""
    heads = [head]
    for event in events:
        event.number = heads[-1].number + 1
        event.previous_hash = heads[-1].hash
        event.at = at
        event.key_version, key = keyring.newest(used=heads[-1].key_version)
        event.hash = event.content_hash()
        event.mac = code(key, event.hash)
        heads.append(Head(event.number, event.hash, at, event.key_version))
    if not move_head(heads):
        raise ChainMoved(f"Event {events[0].number} was taken by another writer. Try the whole change again.")
    insert(events)


def _clock_step(before: datetime, now: datetime) -> Event:
    """The event that explains why the times of the next ones are earlier."""
    return Event(
        action=Action.CLOCK_STEP.value,
        actor_kind=SYSTEM.kind.value,
        actor_key=SYSTEM.key,
        actor_name=SYSTEM.name,
        subject_kind="clock",
        subject_key="clock",
        subject_label="the clock of this machine",
        before={"at": utc_text(before)},
        after={"at": utc_text(now)},
    )


def _is_passing(error: DatabaseError) -> bool:
    """Whether `error` is a lost race or a wait that took too long: the caller's to try again, no fault of the trail."""
    retried = getattr(error.__cause__, "sqlstate", "") in _PASSING
    is_race = isinstance(error, IntegrityError) and any(word in str(error).lower() for word in ("unique", "duplicate"))
    is_busy = isinstance(error, OperationalError) and "locked" in str(error)
    return retried or is_race or is_busy


def _unwritable(error: DatabaseError) -> TrailUnwritable:
    """`error` as it closes the trail, noted as an outage."""
    said = str(error).strip().splitlines() or [type(error).__name__]
    sentence = (
        f"The audit trail takes no event, so nothing is changed. The database says: {said[0]}. Let FabricUI’s "
        "account insert into audit_event and update audit_chainhead (docs/audit.md, “Grants”), and see that the disk "
        "is not full."
    )
    outage.note(sentence)
    return TrailUnwritable(sentence)


def _require_transaction(connection: BaseDatabaseWrapper) -> None:
    # A TestCase wraps each test in a transaction of its own, which must not hide a missing one in the product.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    if not connection.in_atomic_block or not blocks:
        raise OutsideTransaction(
            "record() was called outside transaction.atomic(): the event and the change it tells of could part."
        )


def _longest(field: str) -> int:
    column = Event._meta.get_field(field)
    assert isinstance(column, models.CharField)  # noqa: S101  for the type checker
    return column.max_length or 0


def _cut(text: str, field: str) -> str:
    text, longest = clean(text), _longest(field)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _key(text: str, field: str) -> str:
    # A key that was cut could name somebody else, so too long a key is our own mistake and stops the change.
    text = clean(text)
    if len(text) > _longest(field):
        raise NotRecordable(f"{field} has {len(text)} characters, and {_longest(field)} is the most it can hold.")
    return text

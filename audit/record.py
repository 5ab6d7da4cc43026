"""`record()`: the only door into the trail."""

from typing import Final

from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.canonical import GENESIS, clean, plain
from audit.errors import ChainMoved, NotRecordable, OutsideTransaction
from audit.models import ChainHead, Event
from audit.request_id import current_request_id
from audit.values import Actor, Subject

THE_HEAD: Final = 1  # the id of the one ChainHead row


def record(
    *,
    action: Action,
    actor: Actor,
    subject: Subject,
    before: object = None,
    after: object = None,
    reason: str = "",
    tenant_key: str = "",
) -> Event:
    """Append one event to the chain, in the transaction of the change it tells of.

    Make it the last statement of that transaction: it holds the head of the chain until the commit, and with it
    every other recording of the whole product. Several calls in a row are fine.
    `before` and `after` are whatever `audit.canonical.plain` can write down: the values that changed, never a
    secret. Names and labels are cut to their length, keys never are.

    Raises OutsideTransaction without an open transaction, NotRecordable for a value that is no plain text or
    number, ChainMoved if the database let another writer in between (then nothing of the transaction may stay).
    """
    _require_transaction(transaction.get_connection())
    event = Event(
        action=action.value,
        actor_kind=actor.kind.value,
        actor_key=_key(actor.key, "actor_key"),
        actor_name=_cut(actor.name, "actor_name"),
        subject_kind=_key(subject.kind, "subject_kind"),
        subject_key=_key(subject.key, "subject_key"),
        subject_label=_cut(subject.label, "subject_label"),
        tenant_key=_key(tenant_key, "tenant_key"),
        before=plain(before, where="before"),
        after=plain(after, where="after"),
        reason=clean(reason),
        request_id=current_request_id(),
    )
    head = _locked_head()
    event.number = head.number + 1
    event.previous_hash = head.hash
    event.at = timezone.now()  # read under the lock, so that times rise with the numbers
    event.hash = event.content_hash()
    moved = ChainHead.objects.filter(pk=THE_HEAD, number=head.number, hash=head.hash).update(
        number=event.number, hash=event.hash
    )
    if moved != 1:
        raise ChainMoved(f"Event {event.number} was taken by another writer. Try the whole change again.")
    event.append()
    transaction.on_commit(nudge.followers, robust=True)
    return event


def _require_transaction(connection: BaseDatabaseWrapper) -> None:
    # A TestCase wraps each test in a transaction of its own, which must not hide a missing one in the product.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    if not connection.in_atomic_block or not blocks:
        raise OutsideTransaction(
            "record() was called outside transaction.atomic(): the event and the change it tells of could part."
        )


def _locked_head() -> ChainHead:
    """Give the head row, locked until the commit.

    PostgreSQL locks the row. SQLite knows no row locks, but its transactions are IMMEDIATE (settings), so the
    whole database is already ours; the compare-and-swap in `record` stands even without either.
    """
    heads = ChainHead.objects.select_for_update()
    head = heads.filter(pk=THE_HEAD).first()
    if head is None:  # the very first event; of two writers one inserts and the other waits for it here
        ChainHead.objects.bulk_create([ChainHead(pk=THE_HEAD, number=0, hash=GENESIS)], ignore_conflicts=True)
        head = heads.get(pk=THE_HEAD)
    return head


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

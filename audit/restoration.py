"""After the database came back from a backup: tell the trail which events were lost, so that it can go on honestly.

What is lost stays lost, and every later check says so. The anchors outside are what shows it.
"""

from dataclasses import dataclass

from django.db import transaction

from audit import anchors, chain, signing
from audit.actions import Action
from audit.errors import NotBehind
from audit.models import Event
from audit.record import record
from audit.values import Actor, Subject
from audit.verifier import REWRITTEN, TRUNCATED, Anchor


@dataclass(frozen=True, slots=True)
class Loss:
    """What is missing: the events after `confirmed`, up to the newest one that was anchored."""

    confirmed: int
    newest: Anchor

    @property
    def sentence(self) -> str:
        """For a person who decides whether it was a restore."""
        return (
            f"The trail is confirmed up to event {self.confirmed}. Event {self.newest.number} was anchored at "
            f"{self.newest.sealed_at} and is not in this database: events {self.confirmed + 1} to {self.newest.number} "
            "are lost here."
        )


def loss() -> Loss:
    """What the anchors know and this database does not.

    Raises NotBehind when nothing is missing, or when the trail is broken otherwise than by a restore.
    """
    known = anchors.every()
    report = chain.verify(anchors=known)
    if report.is_sound:
        raise NotBehind("No anchor knows more than the trail: nothing was lost, and there is nothing to tell.")
    if report.kind not in {TRUNCATED, REWRITTEN}:
        raise NotBehind(f"This is not what a restore from a backup leaves behind: {report.sentence}")
    public = signing.public_key()
    signed = [anchor for anchor in known if anchor.is_signed_by(public, signing.verify)]
    hashes = dict(Event.objects.filter(number__in={one.number for one in signed}).values_list("number", "hash"))
    confirmed = max((one.number for one in signed if hashes.get(one.number) == one.hash), default=0)
    missing = [one for one in signed if hashes.get(one.number) != one.hash and one.number > confirmed]
    if not missing:
        raise NotBehind(f"No signed anchor tells what is missing: {report.sentence}")
    return Loss(confirmed, max(missing, key=lambda one: (one.number, one.sealed_at)))


def tell(*, actor: Actor, reason: str) -> Event:
    """Record that the database was restored, by whose word, and what was lost by it. Raises NotBehind."""
    lost = loss()
    with transaction.atomic():
        return record(
            action=Action.TRAIL_RESTORED,
            actor=actor,
            subject=Subject(kind="trail", key="trail", label="the audit trail"),
            after={
                "lost_from": lost.confirmed + 1,
                "lost_to": lost.newest.number,
                "newest_lost_hash": lost.newest.hash,
                "newest_lost_sealed_at": lost.newest.sealed_at,
            },
            reason=reason,
        )

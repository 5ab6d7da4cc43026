"""A rollout in each of the states that a page shows, beside the first assignment, which was proven."""

from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from deploy.models import HostOutcome, Rollout, RolloutStep
from inventory.models import ManagerHost, Port
from lab.pictures.drifted import NO_ANSWER
from lab.pictures.provider import Provider

# State, host, what is told, and which moment of the hosts it is: of all of them where none is named.
STEPS: Final = (
    ("QUEUED", "", "Queued by Olga.", ""),
    ("STAGING", "", "A worker has taken up the rollout and looks at the manager hosts.", ""),
    ("PLACING", "", "Staged {revision} on m1 and m2.", "staged_at"),
    ("PLACING", "m2", "Placed {revision} on m2.", "placed_at"),
    ("PLACING", "m1", "Placed {revision} on m1.", "placed_at"),
    ("RELOADING", "", "Every manager host holds the revision.", ""),
    ("READING_BACK", "m1", "OpenSM on m1 was told to read it; waiting until its sweep is over.", "reloaded_at"),
    ("PROVEN", "", "Proven: {ports} of {ports} ports hold exactly what they should; 0 absent, 0 unreadable.", ""),
)
NOT_CHECKED: Final = (
    "Routing, multicast groups and traffic were not checked: only P_Key tables, LIDs, states and the master."
)
STRANGE: Final = (
    "Port 0x0002c90400000101 of srv-001 (LID 7) holds 0xac41 at index 3, which it should not. Stop what uses it; it "
    "can still reach that partition."
)
BY_HAND: Final = (
    "OpenSM does not mend a table that was changed behind its back: take that port's link down and up (or restart its "
    "server), take a new look, and see that the port holds what it should. Then let go of this rollout with a reason."
)
PROVEN: Final[dict[str, Any]] = {
    "counts": {"ports": 14, "proven": 14, "absent": 0, "unreadable": 0, "discrepancies": 0},
    "not_checked": [NOT_CHECKED], "smps": 58, "seconds": {"barrier": 1.8, "tables": 0.2},
}  # fmt: skip
CONTRARY: Final[dict[str, Any]] = {
    "counts": {"ports": 14, "proven": 13, "absent": 1, "unreadable": 0, "discrepancies": 1},
    "discrepancies": [STRANGE], "owed": ["0x0002c90400000101"],
    "not_checked": [NOT_CHECKED], "log": ["ERR 7E10: line 3"],
}  # fmt: skip


def of_each_state(provider: Provider) -> dict[str, Rollout]:
    """The rollouts by name; the newest of them waits for nothing."""
    proven = tell_proven(Rollout.objects.earliest("pk"))
    fields = {name: getattr(proven, name) for name in ("subnet", "revision", "parent", "before")}
    fields |= {"started_by_name": "Olga", "started_by_key": "olga", "requested_at": timezone.now()}
    over = {"finished_at": timezone.now() + timedelta(seconds=4)}
    stuck = Rollout.objects.create(
        **fields, **over, state="STUCK", cause=f"{STRANGE} {BY_HAND}", read_back=CONTRARY, reason="ticket 40"
    )
    refused = Rollout.objects.create(
        **fields, **over, state="REFUSED", reason="ticket 41",
        cause=NO_ANSWER,
    )  # fmt: skip
    running = Rollout.objects.create(**fields, state="PLACING", reason="ticket 42")
    for rollout, steps in ((stuck, 7), (refused, 2), (running, 4)):
        _told(rollout, steps)
    waits, by_word = _by_word(proven, fields | over)
    return {"proven": proven, "stuck": stuck, "refused": refused, "running": running, "waits": waits, "word": by_word}


def tell_proven(rollout: Rollout, *, ports: int = 14) -> Rollout:
    """A proven rollout with its story and the evidence of so many ports, as the worker leaves them."""
    _told(rollout, len(STEPS), ports=ports)
    counts = PROVEN["counts"] | {"ports": ports, "proven": ports}
    Rollout.objects.filter(pk=rollout.pk).update(read_back=PROVEN | {"counts": counts}, after=rollout.before)
    return rollout


def _told(rollout: Rollout, steps: int, *, ports: int = 14) -> None:
    """The story of a rollout so far, and how far it came on each host."""
    began = rollout.requested_at
    for at, (state, host, text, _) in enumerate(STEPS[:steps]):
        RolloutStep.objects.create(
            rollout=rollout,
            at=began + timedelta(seconds=at * 0.4),
            state=state,
            host=host,
            text=text.format(ports=ports, revision=rollout.revision),
        )
    is_over = steps == len(STEPS)
    for manager, role in zip(ManagerHost.objects.order_by("name"), ("MASTER", "STANDBY"), strict=True):
        done = [mark for _, host, _, mark in STEPS[:steps] if host in ("", manager.name)]
        moments = {
            column: began + timedelta(seconds=2) if column in done else None
            for column in ("staged_at", "placed_at", "reloaded_at")
        }
        said = {"role_at_proof": role, "digest": rollout.revision.digest} if is_over else {}
        HostOutcome.objects.update_or_create(
            rollout=rollout, host=manager, defaults={"role_at_start": role, **said, **moments}
        )


def _by_word(proven: Rollout, fields: dict[str, Any]) -> tuple[Rollout, ...]:
    """Those that go without a standby, with one absent port accepted and others that may be."""
    stands, gone, moved = (str(port.guid) for port in Port.objects.order_by("guid")[:3])
    cause = f"Port {gone} is not on the fabric, so what it holds is not proven."
    said = {"by": "Olga", "reason": "in the workshop"}
    return tuple(
        Rollout.objects.create(
            **fields, state=state, cause=cause, after=proven.after,
            read_back=PROVEN | {
                "counts": PROVEN["counts"] | {"proven": 12, "absent": 2},
                "moved": {moved: [99, "ACTIVE"]}, "absent": [gone],
            },
            accepted={**said, "at": "", "moved": {}, "absent": [stands]}, without={**said, "hosts": ["m2"]},
        )
        for state in ("UNPROVEN", "PROVEN")  # the newest must not be the one that waits
    )  # fmt: skip

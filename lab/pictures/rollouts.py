"""A rollout in each of the states that a page shows, beside the first assignment, which was proven."""

from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from deploy.models import HostOutcome, Rollout, RolloutStep
from inventory.models import ManagerHost, Port
from lab.pictures.provider import Provider

STEPS: Final = (
    ("QUEUED", "", "Waiting for the worker."),
    ("STAGING", "m1", "Staged on m1: 1,204 bytes, digest checked."),
    ("STAGING", "m2", "Staged on m2: 1,204 bytes, digest checked."),
    ("PLACING", "m2", "Placed on m2."),
    ("PLACING", "m1", "Placed on m1."),
    ("RELOADING", "m1", "The OpenSM of m1 was told to read it."),
    ("READING_BACK", "m1", "The sweep is over after 1.8 s."),
    ("PROVEN", "", "Proven: {ports} of {ports} ports hold exactly what they should; 0 absent, 0 unreadable."),
)
PROVEN: Final[dict[str, Any]] = {
    "counts": {"ports": 14, "proven": 14, "absent": 0, "unreadable": 0, "discrepancies": 0},
    "not_checked": ["Links were not probed."], "smps": 58, "seconds": {"barrier": 1.8, "tables": 0.2},
}  # fmt: skip
CONTRARY: Final[dict[str, Any]] = {
    "counts": {"ports": 14, "proven": 13, "absent": 1, "unreadable": 0, "discrepancies": 1},
    "discrepancies": ["Port 0x0002c90400000101 holds 0xac41."], "owed": ["0x0002c90400000101"],
    "not_checked": ["Links were not probed."], "log": ["ERR 7E10: line 3"],
}  # fmt: skip


def of_each_state(provider: Provider) -> dict[str, Rollout]:
    """The rollouts by name; the newest of them waits for nothing."""
    proven = tell_proven(Rollout.objects.earliest("pk"))
    fields = {name: getattr(proven, name) for name in ("subnet", "revision", "parent", "before")}
    fields |= {"started_by_name": "Olga", "started_by_key": "olga", "requested_at": timezone.now()}
    over = {"finished_at": timezone.now() + timedelta(seconds=4)}
    stuck = Rollout.objects.create(
        **fields, **over, state="STUCK", cause="Log in to m1 and look.", read_back=CONTRARY, reason="ticket 40"
    )
    refused = Rollout.objects.create(
        **fields, **over, state="REFUSED", reason="ticket 41",
        cause="Manager host m2: no connection could be made. Nothing was placed anywhere.",
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
    done = [(state, host) for state, host, _ in STEPS[:steps]]
    for at, (state, host, text) in enumerate(STEPS[:steps]):
        RolloutStep.objects.create(
            rollout=rollout,
            at=began + timedelta(seconds=at * 0.4),
            state=state,
            host=host,
            text=text.format(ports=ports),
        )
    is_over = steps == len(STEPS)
    for manager, role in zip(ManagerHost.objects.order_by("name"), ("MASTER", "STANDBY"), strict=True):
        moments = {
            column: began + timedelta(seconds=2) if (state, manager.name) in done else None
            for column, state in (("staged_at", "STAGING"), ("placed_at", "PLACING"), ("reloaded_at", "RELOADING"))
        }
        said = {"role_at_proof": role, "digest": rollout.revision.digest} if is_over else {}
        HostOutcome.objects.update_or_create(
            rollout=rollout, host=manager, defaults={"role_at_start": role, **said, **moments}
        )


def _by_word(proven: Rollout, fields: dict[str, Any]) -> tuple[Rollout, ...]:
    """Those that go without a standby, with one absent port accepted and others that may be."""
    stands, gone, moved = (str(port.guid) for port in Port.objects.order_by("guid")[:3])
    said = {"by": "Olga", "reason": "in the workshop"}
    return tuple(
        Rollout.objects.create(
            **fields, state=state, cause="Port moved.", after=proven.after,
            read_back=PROVEN | {
                "counts": PROVEN["counts"] | {"proven": 12, "absent": 2},
                "moved": {moved: [99, "ACTIVE"]}, "absent": [gone],
            },
            accepted={**said, "at": "", "moved": {}, "absent": [stands]}, without={**said, "hosts": ["m2"]},
        )
        for state in ("UNPROVEN", "PROVEN")  # the newest must not be the one that waits
    )  # fmt: skip

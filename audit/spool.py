"""The one way past a trail that takes no event, for putting the last proven files back: written beside, chained later.

Each entry is on the disk before what it tells of is committed, so an entry may tell of an attempt that then failed; an
event that is missing would be worse.
"""

import fcntl
import json
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit import outage
from audit.actions import Action
from audit.canonical import canonical, plain, utc_text
from audit.errors import SpoolUnwritable, TrailUnavailable
from audit.models import Event
from audit.record import record
from audit.values import Actor, ActorKind, Subject

log = logging.getLogger(__name__)

_REQUEST: Final = "spool-"  # what the request id of a chained entry begins with: so an entry is chained once


def path() -> Path:
    """The spool: a file of the machine on which the rollout worker runs."""
    return Path(settings.AUDIT_SPOOL_FILE)


def record_or_spool(
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
) -> Event | None:
    """As `record()`, but an event that the trail does not take is spooled, and None is given.

    Only for the steps of a restore to the last proven revision: everything else waits for the trail. Raises
    SpoolUnwritable when there is nowhere left to write.
    """
    try:
        with transaction.atomic():
            return record(
                action=action, actor=actor, subject=subject, before=before, after=after, reason=reason,
                tenant_key=tenant_key, rollout_key=rollout_key, revision_key=revision_key,
            )  # fmt: skip
    except TrailUnavailable as error:
        entry = {
            "id": secrets.token_hex(8),
            "at": utc_text(timezone.now()),
            "why": str(error),
            "action": action.value,
            "actor": plain(actor),
            "subject": plain(subject),
            "before": plain(before, where="before"),
            "after": plain(after, where="after"),
            "reason": reason,
            "links": {"tenant_key": tenant_key, "rollout_key": rollout_key, "revision_key": revision_key},
        }
        _append(canonical(entry) + b"\n")
        log.error("spooled %s of %s: %s", action.value, subject.label, error)
        return None


def waiting() -> int:
    """How many entries are not chained yet; 1 for a spool that cannot be read. Without one, a look at the files."""
    try:
        return path().read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
    except OSError as error:
        log.error("the spool %s cannot be read: %s", path(), error.strerror)
        return 1


def recover() -> int:
    """Chain what was spooled, in order, and empty the spool; return how many. Safe to call at any time, twice at once.

    Raises TrailUnavailable while the trail still takes no event; the spool stays then.
    """
    if not waiting():
        return 0
    with _locked() as handle:
        lines = _read(handle).splitlines()
        entries = [entry for line in lines if (entry := _entry(line)) is not None]
        with transaction.atomic():
            chained = sum(_chain(entry) for entry in entries)
        _keep_unreadable([line for line in lines if _entry(line) is None])
        os.ftruncate(handle, 0)
        os.fsync(handle)
    outage.over()
    return chained


def _chain(entry: dict[str, Any]) -> bool:
    request = f"{_REQUEST}{entry['id']}"
    if Event.objects.filter(request_id=request).exists():  # the spool was not emptied after the commit
        return False
    after = entry["after"] if isinstance(entry["after"], dict) else {"value": entry["after"]}
    actor = entry["actor"]
    record(
        action=_action(entry["action"]),
        actor=Actor(kind=ActorKind(actor["kind"]), key=actor["key"], name=actor["name"]),
        subject=Subject(**entry["subject"]),
        before=entry["before"],
        after={**after, "spooled_at": entry["at"], "spooled_because": entry["why"]},
        reason=entry["reason"],
        request_id=request,
        **entry["links"],
    )
    return True


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
        is_whole = isinstance(entry, dict) and bool(_action(entry["action"]) and entry["id"])
        return entry if is_whole else None
    except (ValueError, KeyError, StopIteration):
        return None  # cut short by a crash before its step was taken


def _action(value: str) -> Action:
    return next(action for action in Action if action.value == value)


def _keep_unreadable(lines: list[bytes]) -> None:
    if lines:
        with path().with_name(f"{path().name}.unreadable").open("ab") as kept:
            kept.write(b"\n".join(lines) + b"\n")
        log.error("%d lines of the spool %s are no entries; they are kept in %s.unreadable", len(lines), path(), path())


def _append(line: bytes) -> None:
    try:
        path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_new = not path().exists()
        with _locked() as handle:
            os.lseek(handle, 0, os.SEEK_END)
            os.write(handle, line)
            os.fsync(handle)
        if is_new:
            folder = os.open(path().parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise SpoolUnwritable(
            f"Neither the audit trail nor its spool {path()} can be written ({error.strerror}), so nothing is done. "
            "Mend either; FABRICUI_AUDIT_SPOOL_FILE names the spool."
        ) from error


@contextmanager
def _locked() -> Iterator[int]:
    handle = os.open(path(), os.O_RDWR | os.O_CREAT, 0o600)
    held = os.fstat(handle)
    if held.st_uid == os.geteuid() and held.st_mode & 0o777 != 0o660:
        os.fchmod(handle, 0o660)  # whoever restores writes it, whoever keeps house chains it: they share a group
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _read(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, os.fstat(handle).st_size)

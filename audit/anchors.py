"""Sign the head of the chain, and write that where the owner of the database does not reach: a file, and syslog.

An anchor says “event N had this hash at that time”. Whoever cuts off or rewrites what came before has to change every
copy of it, and cannot sign another.
"""

import logging
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from logging.handlers import SysLogHandler
from pathlib import Path
from typing import Any, Final, NoReturn

from django.conf import settings
from django.db import transaction

from audit import chain, signing
from audit.appending import THE_HEAD
from audit.errors import SigningUnavailable
from audit.models import ChainHead, Seal
from audit.verifier import Anchor, Report, anchors_in, fingerprint

HEARTBEAT: Final = timedelta(hours=1)  # so often an unmoved head is sealed again, so that silence means something
TAIL_BYTES: Final = 64 * 1024  # of the anchor file, compared each time; the hourly check compares all of it


def seal(*, now: datetime) -> tuple[Seal | None, Report]:
    """Check what came since the last seal, sign the head, and write it outside; give the seal and the report.

    No seal when there is nothing to seal, or when the check finds a break: what is not sound is not signed.
    Raises SigningUnavailable when it cannot be signed or written outside; then there is no seal either.
    """
    public = signing.ensure()
    last = Seal.objects.order_by("-pk").first()
    _require_file(has_seals=last is not None)
    head = ChainHead.objects.filter(pk=THE_HEAD).first()
    if head is None or head.number == 0:
        return None, chain.verify(anchors=list(tail()))
    # From the sealed event itself on, so that the walk meets it and compares it with its own anchor.
    since = min(last.number, head.number) if last is not None else 1
    report = chain.verify(since=since, anchors=list(tail()))
    if not report.is_sound:
        return None, report
    number, hash_ = report.up_to, report.last_hash
    if last is not None and last.hash == hash_ and now - last.sealed_at < HEARTBEAT:
        return None, report
    at = chain.at_of(number)
    made = Seal(number=number, hash=hash_, event_at=at, sealed_at=now, key=fingerprint(public))
    made.signature = signing.sign(made.to_anchor().statement()).hex()
    with transaction.atomic():
        made.save(force_insert=True)
        line = made.to_anchor().line()
        _write_file(line)
        _write_syslog(line)
    return made, report


def path() -> Path:
    """The anchor file. In production it is another account's, on another machine, or can only be appended to."""
    return Path(settings.AUDIT_ANCHOR_FILE)


def tail() -> Iterator[Anchor]:
    """The newest anchors of the file."""
    try:
        with path().open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(error) from error
    yield from anchors_in(text)


def every() -> list[Anchor]:
    """All anchors of the file. Raises SigningUnavailable when it cannot be read; none when it is not there."""
    try:
        return list(anchors_in(path().read_text(encoding="utf-8", errors="replace")))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> SigningUnavailable:
    return SigningUnavailable(
        f"The anchor file {path()} cannot be read ({error.strerror}): the housekeeping worker compares the trail with "
        "it. Let its account read and append to it."
    )


def _require_file(*, has_seals: bool) -> None:
    if has_seals and not path().exists():
        raise SigningUnavailable(
            f"The anchor file {path()} is gone, and seals were written to it. Put it back. If it was moved away on "
            "purpose, keep it, and begin a new one with an empty file of this name."
        )


def _write_file(line: str) -> None:
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            os.write(handle, f"{line}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise SigningUnavailable(
            f"The anchor file {file} cannot be appended to ({error.strerror}). Let the housekeeping worker’s account "
            "append to it, and see that its disk is not full."
        ) from error


class _Strict(SysLogHandler):
    """A handler that does not keep its failures to itself."""

    def handleError(self, record: logging.LogRecord) -> NoReturn:
        raise  # called from within the except block of emit()


def _write_syslog(line: str) -> None:
    if not settings.AUDIT_SYSLOG:
        return
    where: Any = settings.AUDIT_SYSLOG
    if not where.startswith("/"):
        host, _, port = where.rpartition(":")
        where = (host.strip("[]") or port, int(port) if host and port.isdecimal() else 514)
    try:
        handler = _Strict(address=where, facility=SysLogHandler.LOG_AUTHPRIV)
        handler.ident, handler.append_nul = "fabricui-audit: ", False
        try:
            handler.emit(logging.LogRecord("audit.anchor", logging.INFO, "", 0, line, None, None))
        finally:
            handler.close()
    except OSError as error:
        raise SigningUnavailable(
            f"Syslog at {settings.AUDIT_SYSLOG} does not take the anchor ({error}). FABRICUI_AUDIT_SYSLOG names it: "
            "/dev/log, or host:port of a server that takes UDP; empty for none."
        ) from error

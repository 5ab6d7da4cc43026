"""`./run manage audit …`: verify, export, keys, anchors, grants, and the way back after a restore."""

import contextlib
import json
import secrets
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction
from django.utils import timezone

from audit import anchors, chain, export, grants, keyring, restoration, signing, spool, watch
from audit.actions import Action
from audit.appending import THE_HEAD
from audit.errors import AuditError
from audit.models import ChainHead, Event
from audit.record import record
from audit.values import SYSTEM, Subject
from audit.verifier import to_json


class Command(BaseCommand):
    """The trail from the command line."""

    help = "Verify, export, sign and mend the audit trail (docs/audit.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        """One word says what to do."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser(
            "verify", help="is the trail as it was written? exits 1 and names the first bad event"
        )
        verify.add_argument(
            "--since", default="1", help="an event's number, or a day (2026-12-01): believe what is before"
        )
        verify.add_argument("--export", metavar="FILE", help="write the events as JSON lines too; - is standard output")
        verify.add_argument("--json", action="store_true", help="print one JSON object instead of sentences")
        verbs.add_parser("make-keys", help="make the secret key and the signing key where the settings name them")
        verbs.add_parser("rotate-key", help="begin a new secret key; the old ones stay, to verify")
        verbs.add_parser("public-key", help="print the public key that checks signatures")
        verbs.add_parser("seal", help="check, sign and anchor now, as the schedule does")
        verbs.add_parser("recover", help="chain what was spooled while the trail took no event")
        of_role = verbs.add_parser("grants", help="print the SQL that lets a PostgreSQL account append and no more")
        of_role.add_argument("--role", required=True)
        restored = verbs.add_parser("restored", help="after a restore from a backup: show, and tell, what was lost")
        restored.add_argument(
            "--reason", default="", help="why it was restored, and by whom; left out, nothing is told"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what the word says."""
        verb = str(options["verb"])
        try:
            getattr(self, f"_{verb.replace('-', '_')}")(options)
        except (AuditError, ValueError, OSError) as error:
            raise CommandError(str(error)) from error

    def _verify(self, options: dict[str, Any]) -> None:
        since = _number(options["since"])
        if options["export"]:
            self._write(options["export"], since)
        report = chain.verify(since=since, anchors=anchors.every())
        if options["json"]:
            self.stdout.write(json.dumps(to_json(report)))
        elif report.is_sound:
            self.stdout.write("\n".join([f"{report.sentence} Head: {report.last_hash}", *report.notes]))
            if report.anchored_to:
                self.stdout.write(f"A signed anchor confirms the events up to {report.anchored_to}.")
        if not report.is_sound:
            raise CommandError(f"{report.kind}: {report.sentence}")

    def _write(self, name: str, since: int) -> None:
        head = ChainHead.objects.filter(pk=THE_HEAD).values_list("number", flat=True).first() or 0
        what = f"events {since} to {head}, from the command line"
        export.record_export(actor=SYSTEM, what=what, form="jsonl", events=max(0, head - since + 1))
        with contextlib.ExitStack() as stack:
            out = sys.stdout if name == "-" else stack.enter_context(Path(name).open("w", encoding="utf-8"))
            out.writelines(export.whole(since=since))

    def _make_keys(self, options: dict[str, Any]) -> None:
        if keyring.path().exists():
            raise CommandError(f"{keyring.path()} is there already. Rotate it: ./run manage audit rotate-key")
        if signing.path().exists():
            raise CommandError(f"{signing.path()} is there already. Nothing was made.")
        _refuse_used()
        keyring.write({1: secrets.token_bytes(keyring.KEY_BYTES)}, is_first=True)
        signing.make(signing.path())
        self.stdout.write(
            f"Secret key: {keyring.path()} (every process of FabricUI reads it; nobody else)\n"
            f"Signing key: {signing.path()} (only the housekeeping worker reads it)\n"
            f"Public key: {signing.public_path()}: give it to whoever will check the trail\n"
            "Keep copies of all three where the database's backups are not."
        )

    def _rotate_key(self, options: dict[str, Any]) -> None:
        with transaction.atomic():
            # The head first: nobody appends under the old key once the new one is written.
            head = ChainHead.objects.select_for_update().filter(pk=THE_HEAD).first()
            used, _ = keyring.newest(used=head.key_version if head else 0)
            ring = keyring.load()
            keyring.write({**ring, used + 1: secrets.token_bytes(keyring.KEY_BYTES)})
            record(
                action=Action.KEY_ROTATE,
                actor=SYSTEM,
                subject=Subject(kind="key", key=str(used + 1), label=f"version {used + 1}"),
                before={"version": used},
                after={"version": used + 1},
            )
        self.stdout.write(f"Key {used + 1} is in use. Copy {keyring.path()} to its backup, and to other machines, now.")

    def _public_key(self, options: dict[str, Any]) -> None:
        self.stdout.write(signing.public_key().hex())

    def _seal(self, options: dict[str, Any]) -> None:
        seal, report = anchors.seal(now=timezone.now())
        if not report.is_sound:
            raise CommandError(f"Not sealed. {report.kind}: {report.sentence}")
        self.stdout.write(f"Event {seal.number} is sealed." if seal else "There is nothing new to seal.")

    def _recover(self, options: dict[str, Any]) -> None:
        self.stdout.write(f"{spool.recover()} spooled events were chained.")

    def _grants(self, options: dict[str, Any]) -> None:
        self.stdout.write("\n".join(grants.statements(options["role"])))

    def _restored(self, options: dict[str, Any]) -> None:
        lost = restoration.loss()
        self.stdout.write(lost.sentence)
        if not options["reason"].strip():
            self.stdout.write(
                "Nothing was told yet. If the database was restored from a backup, say so, with who did it and why:\n"
                "  ./run manage audit restored --reason “…”\nIf it was not, somebody cut the trail: keep the anchors, "
                "and do not go on."
            )
            return
        event = restoration.tell(actor=SYSTEM, reason=options["reason"])
        watch.every_hour()
        self.stdout.write(
            f"Event {event.number} tells of it; the trail goes on from there. Next: docs/audit.md, “After a restore”, "
            "step 4."
        )


def _number(text: str) -> int:
    """The event's number, or that of the first event of the day, that `text` names."""
    if text.isdecimal():
        return max(1, int(text))
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--since {text} is neither an event's number nor a day (2026-12-01).") from None
    at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    first = Event.objects.filter(at__gte=at).order_by("at", "number").values_list("number", flat=True).first()
    head = ChainHead.objects.filter(pk=THE_HEAD).values_list("number", flat=True).first() or 0
    return first or head + 1


def _refuse_used() -> None:
    if ChainHead._meta.db_table not in connection.introspection.table_names():
        return  # keys come before the first table
    used = ChainHead.objects.filter(pk=THE_HEAD).values_list("key_version", flat=True).first() or 0
    if used:
        raise CommandError(
            f"The trail was written with key {used}, and its file is not here. A new key cannot stand in for it: put "
            "the file back from its backup."
        )

"""`manage.py find_evidence`: somebody shows a signed document, and asks whose it is."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.evidence.lookup import SHORTEST, Found, find


class Command(BaseCommand):
    """Say whose a document of evidence is, when it was signed and who asked for it. Nothing of its content is shown."""

    help = "Find signed evidence by its SHA-256 (or the first digits of it) or its id: whose, when, and by whom."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the SHA-256 or the id."""
        parser.add_argument("what", help=f"SHA-256 of the file, at least {SHORTEST} digits of it, or the document's id")
        parser.add_argument("--json", action="store_true", help="for programs: a list of documents")

    def handle(self, *args: Any, **options: Any) -> None:
        """Find and print."""
        found = find(options["what"])
        if not found:
            raise CommandError(
                f"The trail tells of no evidence with the SHA-256 or id “{options['what'][:70]}”. Take the SHA-256 of "
                f"the whole file (sha256sum), or at least its first {SHORTEST} digits."
            )
        if options["json"]:
            self.stdout.write(json.dumps([asdict(one) for one in found], default=_text))
            return
        self.stdout.write("\n\n".join(_told(one) for one in found))


def _told(one: Found) -> str:
    numbers = ", ".join(str(number) for number in one.events)
    return "\n".join([
        f"Evidence {one.id} of {one.tenant}",
        f"  asked for  {_text(one.asked_at)} by {one.asked_by or 'somebody the trail does not tell of'}",
        f"  signed     {_text(one.signed_at)}",
        f"  SHA-256    {one.digest or 'none'}",
        f"  document   {'kept' if one.is_kept else 'kept no more'}",
        f"  events     {numbers}",
    ])  # fmt: skip


def _text(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at is not None else "not yet"

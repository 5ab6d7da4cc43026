"""`manage.py audit_verify`: is the trail as it was written?"""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.chain import verify


class Command(BaseCommand):
    """Check the hash chain over all events; exit 1 and name the first bad event if it is broken."""

    help = "Check the hash chain of the audit trail; exits 1 and names the first bad event if it is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        """Offer --json."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of a sentence")

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and print."""
        report = verify()
        if options["json"]:
            fields = {
                "sound": report.is_sound,
                "events": report.events,
                "head": report.head_hash,
                "broken_at": report.broken_at,
                "kind": report.kind,
                "sentence": report.sentence,
            }
            self.stdout.write(json.dumps(fields))
        elif report.is_sound:
            self.stdout.write(f"{report.sentence} Head: {report.head_hash}")
        if not report.is_sound:
            raise CommandError(report.sentence)

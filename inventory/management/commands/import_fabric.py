"""`manage.py import_fabric`: read what a fabric tool printed, say what it means here, and take it over if asked to."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.importing import Import, compare
from inventory.models import Subnet
from inventory.operations import import_listing
from subnet.errors import InvalidListing
from subnet.listing import Kind, Listing
from subnet.listing_readers import read

_MOST_BYTES = 16 * 1024 * 1024


class Command(BaseCommand):
    """Show what a listing would change; with --apply, change it."""

    help = (
        "Read the output of ibnetdiscover, ibnetdiscover -p, ibstat, rdma link, ibhosts or ibdev2netdev, a list "
        "of node descriptions or of GUIDs, and show what it would change in the inventory. "
        "Nothing is written without --apply."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the text and what to do with it."""
        parser.add_argument("file", help="the text, or - for standard input")
        parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="who printed it (default: found out)")
        parser.add_argument("--subnet", help="name of the subnet (needed when there are several)")
        parser.add_argument(
            "--with", dest="beside", metavar="FILE", help="an ibnetdiscover text that tells nodes apart"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--apply", action="store_true", help="write it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, compare, write if asked to, print."""
        subnet = _subnet(options["subnet"])
        try:
            listing = read(_text(options["file"]), Kind(options["kind"]) if options["kind"] else None)
            beside = read(_text(options["beside"])) if options["beside"] else None
            if options["apply"]:
                found = import_listing(subnet=subnet, listing=listing, actor=SYSTEM)
            else:
                found = compare(subnet=subnet, listing=listing, beside=beside)
        except (InvalidListing, InventoryError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            result = {
                "subnet": subnet.name,
                "applied": options["apply"],
                **found.to_json(),
                "listing": listing.to_json(),
            }
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(listing, found, has_applied=options["apply"])))
        if listing.failed is not None:
            raise CommandError(listing.failed)


def _subnet(name: str | None) -> Subnet:
    subnets = Subnet.objects.filter(name=name) if name else Subnet.objects.all()
    found = list(subnets[:2])
    if len(found) == 1:
        return found[0]
    if name:
        raise CommandError(f"There is no subnet called {name}.")
    raise CommandError("Say which subnet with --subnet." if found else "There is no subnet. Create one: create_subnet.")


def _text(name: str) -> str:
    """The text of a file or of standard input; what is not UTF-8 in it (descriptions may be anything) becomes “?”."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
    if len(data) > _MOST_BYTES:
        raise CommandError(f"{name} has more than {_MOST_BYTES} bytes; that is no listing of one fabric.")
    return data.decode("utf-8", "replace").replace("\ufffd", "?")


def _lines(listing: Listing, found: Import, *, has_applied: bool) -> list[str]:
    """The import in words."""
    verb = "added" if has_applied else "would be added"
    lines = [f"Read as {listing.kind.value}: {len(listing.nodes)} nodes, {len(listing.ports)} ports of HCAs."]
    lines += listing.findings
    lines += [f"{port.guid} {verb}, unregistered ({port.description.strip() or 'no name'})" for port in found.new]
    lines += [f"{port.guid} {'is' if has_applied else 'would be'} called “{text}”" for port, text in found.described]
    lines += [f"{guid} is known" for guid in found.unchanged]
    lines += [f"{guid} is known in another subnet and stays there" for guid in found.elsewhere]
    lines += [
        f"{port.guid or '-'} {port.device} port {port.number}: left out, {why}".replace("  ", " ")
        for port, why in found.left_out
    ]
    for node, ports in found.node_guids.items():
        lines.append(f"{node} is a node GUID, no port's. Its port GUIDs: {', '.join(ports) or 'not known'}")
    lines += [f"{guid} is not known: no port and no node here has it" for guid in found.unknown]
    for one in listing.spellings:
        if one.guid is None:
            lines.append(one.error)
    lines += [f"“{text}”" for text in listing.descriptions]
    if not has_applied and (found.new or found.described):
        lines.append("Nothing was written. Write it with --apply.")
    return lines

"""`manage.py partitions_conf`: what OpenSM would make of a partition file, before anybody places it.

Reads files and prints; it needs no database and reaches no machine. Exit status: 0 answered, 1 `check` says refuse,
2 the question cannot be answered (no such file, no GUID, no topology).
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from partitions import conf_report
from subnet.errors import InvalidGUID, InvalidListing
from subnet.guid import GUID
from subnet.opensm_reading import Fabric, Reading, check, read

UNANSWERED = 2
_LARGEST = 256 << 20  # bytes; a file of 50 MB is read in a minute and 600 MB of memory; diff reads two
_LARGE = 4 << 20  # bytes of each of two files that are read beside one another
_HELP = {
    "check": "verdict and findings, without knowing the fabric",
    "explain": "each end port's P_Key table on a given fabric, by a freshly started OpenSM",
    "diff": "the ports whose table differs between two files",
}


class Command(BaseCommand):
    """Say what OpenSM 3.3.23 makes of a partitions.conf."""

    help = "Say what OpenSM would make of a partitions.conf: check, explain or diff (docs/partitions-conf.md)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the verb and what it needs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, what in _HELP.items():
            sub = verbs.add_parser(verb, help=what)
            if verb == "diff":
                sub.add_argument("old", metavar="OLD", help="the file as it is; - is standard input")
                sub.add_argument("file", metavar="NEW", help="the file as it would be; - is standard input")
            else:
                sub.add_argument("file", metavar="FILE", help="the file; - is standard input")
            sub.add_argument("--json", action="store_true", help="print one JSON object")
            if verb != "check":
                sub.add_argument("--topology", required=True, metavar="NET", help="text of ibnetdiscover, or for ibsim")
                sub.add_argument("--sm", required=True, metavar="0xGUID", help="port GUID that the SM is bound to")
                sub.add_argument("--allow-both-pkeys", action="store_true", help="opensm.conf says so")
                sub.add_argument(
                    "--port-guids", choices=("counted", "listed"), default="counted",
                    help="port GUIDs are node GUID + port number, as in ibsim (default), or stand in NET's brackets",
                )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Answer on standard output."""
        verb, as_json = options["verb"], options["json"]
        if verb == "check":
            found = check(_bytes_of(options["file"]))
            self._print(conf_report.check_json(found) if as_json else conf_report.check_text(found))
            if found.verdict == "refuse":
                sys.exit(1)
            return
        if options.get("old") == options["file"] == "-":
            raise CommandError("Only one of the two files can be standard input.", returncode=UNANSWERED)
        fabric = _fabric(options)
        if verb == "explain":
            reading = _read(_bytes_of(options["file"]), fabric, options)
            self._print(conf_report.explain_json(reading) if as_json else conf_report.explain_text(reading, fabric))
            return
        old, new = _read_both(_bytes_of(options["old"]), _bytes_of(options["file"]), fabric, options)
        self._print(conf_report.diff_json(old, new) if as_json else conf_report.diff_text(old, new, fabric))

    def _print(self, pieces: Iterator[str]) -> None:
        """Write the answer piece by piece; a reader that stops reading (head) is no error."""
        if sys.stdout is None:  # it was closed before Python began
            raise CommandError("The answer cannot be written: standard output is closed.", returncode=UNANSWERED)
        try:
            for piece in pieces:
                self.stdout.write(piece, ending="")
            self.stdout.write("\n", ending="")
            self.stdout.flush()
        except BrokenPipeError:
            _write_no_more()
        except OSError as error:
            _write_no_more()
            raise CommandError(f"The answer cannot be written: {error.strerror}.", returncode=UNANSWERED) from error


def _write_no_more() -> None:
    # Python would complain again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(data: bytes, fabric: Fabric, options: dict[str, Any]) -> Reading:
    return read(data, fabric, allow_both_pkeys=options["allow_both_pkeys"])


def _read_both(old: bytes, new: bytes, fabric: Fabric, options: dict[str, Any]) -> tuple[Reading, Reading]:
    """Both files; when the two are large, the old one by a process of its own meanwhile."""
    if min(len(old), len(new)) < _LARGE:
        return _read(old, fabric, options), _read(new, fabric, options)
    # Nothing is open yet that a fork must not share: no database, no thread.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as beside:
        other = beside.submit(_tables, old, fabric, options)
        reading = _read(new, fabric, options)
        try:
            return other.result(), reading
        except BrokenProcessPool as error:
            raise CommandError(
                "The process that read the old file was killed, as for want of memory: 50 MB of file take 600 MB.",
                returncode=UNANSWERED,
            ) from error


def _tables(data: bytes, fabric: Fabric, options: dict[str, Any]) -> Reading:
    """What `diff` needs of a reading; the rest would be copied from process to process."""
    return replace(_read(data, fabric, options), partitions=(), findings=())


def _fabric(options: dict[str, Any]) -> Fabric:
    """The fabric that --topology and --sm name."""
    if options["topology"] == "-":
        raise CommandError("The topology cannot be standard input.", returncode=UNANSWERED)
    text = _bytes_of(options["topology"]).decode("utf-8", "replace")
    try:
        return Fabric.from_net(text, sm_port=GUID(options["sm"]), port_guids=options["port_guids"])
    except (InvalidGUID, InvalidListing) as error:
        raise CommandError(str(error), returncode=UNANSWERED) from error


def _bytes_of(name: str) -> bytes:
    """The bytes of a file or, for `-`, of standard input."""
    try:
        if name == "-":
            if sys.stdin is None:  # it was closed before Python began
                raise ValueError("standard input is closed")
            return _some(sys.stdin.buffer)
        with _path(name).open("rb") as file:
            return _some(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandError(f"{name!r} cannot be read: {why}.", returncode=UNANSWERED) from error


def _some(file: BinaryIO) -> bytes:
    """All of it; raise ValueError for what never ends, as a device does, or is no partition file by its size."""
    data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"it holds more than {_LARGEST >> 20} MiB")
    return data


def _path(name: str) -> Path:
    """The file a person means: `./run` changes into its own folder first and leaves theirs in OLDPWD."""
    path = Path(name)
    before = os.environ.get("OLDPWD")
    if not path.is_absolute() and before and not path.exists() and (Path(before) / path).exists():
        return Path(before) / path
    return path

"""Shell: one named verb with arguments and stdin goes out, one Reply comes back. It knows no verb's meaning."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The wrapper's own whitelist, applied before anything is sent (remote/host/fabricui-host, `refuse_characters`).
_WORD = re.compile(r"[A-Za-z0-9_.:-]+\Z")

# Verbs that may be run twice with the effect of once, so that a lost connection may be answered by a second try.
# `place` is one of them because the fencing generation makes the second one answer ALREADY; `reload` is not: its
# answer is the mark taken before the signal, and a second call would take the mark after the first one's signal.
IDEMPOTENT_VERBS = frozenset(
    {"identify", "read", "stage", "place", "sm_state", "barrier", "read_tables", "log_since"},
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one verb answered."""

    exit_status: int
    stdout: bytes
    stderr: bytes


class Shell(Protocol):
    """A way to one machine's wrapper. Implementations: SSHShell, LocalShell."""

    def call(self, verb: str, arguments: Sequence[str] = (), stdin: bytes = b"", *, timeout_s: float) -> Reply:
        """Run one verb and return its whole answer, whatever its exit status.

        Raises Unreachable, HostKeyMismatch, AccessRefused, or CallTimedOut after `timeout_s` seconds.
        """

    def close(self) -> None:
        """Let go of the connection, if there is one. A later call connects again."""


def command_line(verb: str, arguments: Sequence[str]) -> str:
    """The verb and its arguments as one line that the wrapper's whitelist lets through; raise ValueError otherwise."""
    words = [verb, *arguments]
    for word in words:
        if not _WORD.match(word):
            raise ValueError(
                f"“{word}” cannot be sent to a manager host: only letters, digits and _ . : - are let through."
            )
    return " ".join(words)

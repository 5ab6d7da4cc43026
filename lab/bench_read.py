"""`./run bench read`: `partitions_conf check`, `explain` and `diff` on files of 50 MB, each a process of its own.

Shapes of real files grown large, and the dearest one that was found: a header, an mgid and one member, over and over.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lab.bench import Bench
from lab.layout import repository

BYTES = 50_000_000
LONGEST_S, MOST_MIB = 60, 1024
_DEFAULT = b"Default=0x7fff, ipoib : ALL=limited, SELF=full;\n"
_SM = 0x0002C903000A0001
_FABRIC = """\
Switch 1 "S-0002c90300000001" # "leaf"
[1] "H-0002c903000a0000"[1](2c903000a0001) # "sm"

Ca 1 "H-0002c903000a0000" # "sm"
[1](2c903000a0001) "S-0002c90300000001"[1] # lid 1
"""


def _guid(number: int) -> bytes:
    return b"0x%016x" % (0x0002C90300000000 + 7919 * number)


def _gid(number: int) -> bytes:
    return b"ff12::%x:%x" % (number >> 16, number & 0xFFFF)


# What stands before the lines, the lines by their number, and what ends the list.
SHAPES: Mapping[str, tuple[bytes, Callable[[int], bytes], bytes]] = {
    "members": (b"A=0x10 :\n", lambda number: b" %b=full,\n" % _guid(number), b" ALL=full;\n"),
    "statements": (
        b"",
        lambda number: b"P%d=0x%x : %b=full;\n" % (number % 32000, number % 32000 + 1, _guid(number)),
        b"",
    ),
    "groups": (b"A=0x10 :\n", lambda number: b" mgid=%b,sl=%d\n" % (_gid(number), number % 16), b" ALL=full;\n"),
    "groups_apart": (
        b"",
        lambda number: (
            b"P%d=0x%x,ipoib : mgid=%b\n%b=full;\n" % (number % 32000, number % 32000 + 1, _gid(number), _guid(number))
        ),
        b"",
    ),
}


def a_file(name: str, size: int) -> Iterator[bytes]:
    """The pieces of a file of `size` bytes or a few more."""
    begin, line, end = SHAPES[name]
    yield _DEFAULT + begin
    done = number = 0
    while done < size:
        number += 1
        piece = line(number)
        done += len(piece)
        yield piece
    yield end


def measure(arguments: argparse.Namespace) -> Mapping[str, float]:
    """Seconds, processor seconds and MiB of each command on each shape; diff compares a file with itself."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="fabricui-read-") as name:
        net, file = Path(name, "fabric.net"), Path(name, "partitions.conf")
        net.write_text(_FABRIC, encoding="ascii")
        on = ["--topology", str(net), "--sm", f"{_SM:#018x}"]
        for shape in SHAPES:
            with file.open("wb") as output:
                output.writelines(a_file(shape, BYTES))
            for verb, words in (("check", [file]), ("explain", [file, *on]), ("diff", [file, file, *on])):
                begun = time.monotonic()
                seconds, mebibytes = _spent([verb, *map(str, words), "--json"])
                figures[f"{shape}_{verb}_s"] = round(time.monotonic() - begun, 1)
                figures[f"{shape}_{verb}_cpu_s"], figures[f"{shape}_{verb}_mib"] = round(seconds, 1), round(mebibytes)
            print(f"{shape} read …", file=sys.stderr)
    for verb in ("check", "explain", "diff"):
        figures[f"{verb}_s"] = max(figures[f"{shape}_{verb}_s"] for shape in SHAPES)
    figures["mib"] = max(figure for name, figure in figures.items() if name.endswith("_mib"))
    return figures


def _spent(words: list[str]) -> tuple[float, float]:
    """Processor seconds of one command that answers, with what it started, and the most MiB of one of its processes.

    It is stopped at five times the target.
    """
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "partitions_conf", *words],
            cwd=repository(), stdin=subprocess.DEVNULL, stdout=answer,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (5 * LONGEST_S, 5 * LONGEST_S)),
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        answer.seek(0)
        # Status 1 is an answer too (refused; the files differ), and what Django says of bad settings.
        if process.returncode not in (0, 1) or answer.read(1) != b"{":
            raise RuntimeError(f"partitions_conf {words[0]} did not answer, its status is {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


BENCH = Bench(
    measure,
    {
        "check_s": f"<= {LONGEST_S}",
        "explain_s": f"<= {LONGEST_S}",
        "diff_s": f"<= {LONGEST_S}",
        "mib": f"<= {MOST_MIB}",
    },
    "Reading partition files",
    f"files of {BYTES // 1_000_000} MB",
)

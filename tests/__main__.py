"""`./run test`: run all stages, lanes beside one another, and print one table at the end.

With CI set a skipped test is a failure. A stage over its budget is marked, and fails only at three times of it: the
machines are shared. In stages that rest on the simulated fabric, which loses packets, up to two failed tests are tried
once more by themselves; the table counts them, and what they said the first time is printed (ADR 37).
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lab.postgresql import cluster
from tests.stages import BLOCKS, Stage

TOO_LONG = 3
MOST_AGAIN = 2  # failed tests of a stage that are tried once more: one lost packet, not a broken product


@dataclass
class Result:
    """How one stage went."""

    stage: Stage
    seconds: float
    failure: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    again: int = 0  # of those that passed: at the second try only


def main(argv: list[str]) -> int:
    """Run the stages; return 0 only if every one passed and, in CI, none skipped a test."""
    parser = argparse.ArgumentParser(prog="./run test", description=__doc__)
    parser.add_argument("--install-seconds", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--long", action="store_true", help="also the long modes: more examples, more faults")
    parser.add_argument("--only", metavar="WORDS", help="only stages whose name contains these words")
    arguments = parser.parse_args(argv)
    # A shell that starts us in the background lets SIGINT be ignored, and every program below would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = time.monotonic()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="fabricui-test-") as folder:
        for block in BLOCKS:
            lanes = []
            for lane in block:
                chosen = [stage for stage in lane if not arguments.only or arguments.only in stage.name]
                lanes.append(threading.Thread(target=_lane, args=(chosen, Path(folder), results, arguments.long)))
            for thread in lanes:
                thread.start()
            for thread in lanes:
                thread.join()
    return _report(results, arguments.install_seconds, time.monotonic() - begun)


def _lane(stages: list[Stage], folder: Path, results: list[Result], long: bool) -> None:
    for stage in stages:
        print(f"… {stage.name}", flush=True)
        result = _run(stage, folder, long)
        results.append(result)
        print(f"{'FAIL' if result.failure else 'ok  '} {stage.name} ({result.seconds:.0f} s)", flush=True)
        if result.failure:
            print(result.failure, flush=True)


def _run(stage: Stage, folder: Path, long: bool) -> Result:
    begun = time.monotonic()
    own = folder / re.sub(r"\W+", "-", stage.name)
    own.mkdir()
    junit = own / "junit.xml"
    environment = {**os.environ, "FABRICUI_DATA_DIR": str(own / "data"), **stage.environment}
    environment["FABRICUI_TEST_LONG"] = "1" if long else ""
    # Hundreds of processes start here: what one has compiled, pytest's rewritten tests too, the next one finds.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("PYTEST_ADDOPTS", None)  # a -x there would leave tests out without a word
    (own / "data").mkdir()
    status, failure = 0, ""
    with contextlib.ExitStack() as stack:
        if stage.postgresql:
            environment["DATABASE_URL"] = stack.enter_context(cluster())
        for command in stage.commands:
            argv = list(command)
            if stage.junit:
                argv += ["-o", f"cache_dir={own / 'cache'}", f"--junit-xml={junit}", "--maxfail=0"]  # all of it runs
            status, failure = _ends(argv, own / "log", environment, stage.budget_s * TOO_LONG)
            if failure:
                break
        result = Result(stage, 0.0, failure)
        if stage.junit:
            _count(result, junit)
            # Status 1 is pytest's word for some that failed; it gives others when it did not come to its end.
            if stage.simulated and status == 1 and 0 < result.failed <= MOST_AGAIN and not result.skipped:
                _try_again(result, argv, own, environment)
        elif not failure:
            result.passed = 1
        else:
            result.failed = 1
    result.seconds = time.monotonic() - begun
    return result


def _ends(argv: list[str], log: Path, environment: dict[str, str], within_s: float) -> tuple[int, str]:
    """Run a command; its exit status, and unless that is 0, how it ended and the end of what it said."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=subprocess.STDOUT, env=environment, stdin=subprocess.DEVNULL
        )
        try:
            status = process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # pytest tears its fixtures down on SIGTERM's KeyboardInterrupt-like exit
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            status, note = -1, f"stopped after {within_s:.0f} s"
        else:
            note = f"exit status {status}"
    if not status:
        return 0, ""
    text = log.read_text(encoding="utf-8", errors="replace")
    return status, f"--- {' '.join(argv)}: {note}\n" + "\n".join(text.splitlines()[-120:])


def _try_again(result: Result, argv: list[str], own: Path, environment: dict[str, str]) -> None:
    """Run what failed once more by itself. Only if all of it passes the stage has passed, and the table says so."""
    print(f"--- {result.stage.name}, the first try:\n{result.failure}\n--- the second try …", flush=True)
    junit, wanted = own / "again.xml", result.failed
    _, failure = _ends(
        [*argv, f"--junit-xml={junit}", "--last-failed", "--last-failed-no-failures=none"],
        own / "again.log", environment, result.stage.budget_s * TOO_LONG,
    )  # fmt: skip
    second = Result(result.stage, 0.0, failure)
    _count(second, junit)
    if second.failure or second.passed != wanted:
        result.failure = f"{result.failure}\n--- and at the second try: {second.failure or 'not all of it passed'}"
        return
    result.failure, result.failed, result.again = "", 0, wanted
    result.passed += wanted


def _count(result: Result, junit: Path) -> None:
    """Read pytest's own count; a stage that executed no test has failed."""
    if not junit.exists():
        result.failed, result.failure = 1, result.failure or "pytest wrote no report"
        return
    suite = ElementTree.parse(junit).getroot()  # noqa: S314  our own pytest wrote it a moment ago
    suite = suite if suite.tag == "testsuite" else next(iter(suite))
    number = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    result.failed = number["failures"] + number["errors"]
    result.skipped = number["skipped"]
    result.passed = number["tests"] - result.failed - result.skipped
    if result.passed == 0 and not result.failure:
        result.failure = "no test was executed"
    if result.skipped and os.environ.get("CI") and not result.failure:
        result.failure = f"{result.skipped} tests were skipped, and in CI a skipped test is a failure"
    if result.failure and not result.failed:
        result.failed = 1


def _report(results: list[Result], install_s: int, seconds: float) -> int:
    width = max((len(result.stage.name) for result in results), default=10)
    print(f"\n{'stage':<{width}}  budget   took  passed failed skipped  at the second try")
    print(f"{'install':<{width}}  {240:>5} s {install_s:>4} s")
    for result in results:
        over = "  over budget" if result.seconds > result.stage.budget_s else ""
        print(
            f"{result.stage.name:<{width}}  {result.stage.budget_s:>5} s {result.seconds:>4.0f} s"
            f"  {result.passed:>6} {result.failed:>6} {result.skipped:>7}  {result.again or '':>17}{over}"
        )
    print(f"{'all':<{width}}  {1500:>5} s {install_s + seconds:>4.0f} s")
    names = ("passed", "failed", "skipped", "again")
    passed, failed, skipped, again = (sum(getattr(result, name) for result in results) for name in names)
    print(f"{passed} passed ({again} of them at the second try), {failed} failed, {skipped} skipped")
    return 1 if any(result.failure for result in results) or not results else 0


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    shutil.rmtree("test-results", ignore_errors=True)
    sys.exit(main(sys.argv[1:]))

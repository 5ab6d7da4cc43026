"""The commands of `./run` that belong to the product itself: up, doctor, and the process tree under up and demo."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fabricui import broker as brokers
from fabricui import processes

_INSECURE_COOKIES = ("(security.W012)", "(security.W016)")
# No variable sets HSTS (W004) and the redirect to https (W008): what ends TLS before the pages does both.
_ABOUT_TLS = ("(security.W004)", "(security.W008)", *_INSECURE_COOKIES)


def main(argv: list[str]) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(prog="./run", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, what in (("up", "start web, workers and beat"), ("processes", "the same without the checks of up")):
        sub = verbs.add_parser(verb, help=what)
        sub.add_argument("--host", default="127.0.0.1", help="address of both doors")
        sub.add_argument("--port", type=int, default=8000, help="port of the web door")
        sub.add_argument("--register-port", type=int, default=8001, help="port of the registration door")
        sub.add_argument("--metrics-port", type=int, default=0, help="port of /metrics and health alone (0: none)")
    verbs.add_parser("doctor", help="say what is missing or misconfigured")
    verbs.add_parser("check", help="say why up would not start, and start nothing: for units of systemd")
    arguments = parser.parse_args(argv)
    if arguments.verb == "doctor":
        return doctor()
    if arguments.verb in ("up", "check"):
        refusal = why_not_up()
        if refusal:
            print(refusal, file=sys.stderr)
            return 1
    if arguments.verb == "processes" and (refusal := why_not_without_second_factor()):
        print(refusal, file=sys.stderr)
        return 1
    if arguments.verb == "check":
        return 0
    if arguments.verb == "up":
        for preparation in ("migrate", "collectstatic"):
            if subprocess.run([sys.executable, "manage.py", preparation, "--no-input"], check=False).returncode:
                return 1
    doors = (arguments.host, arguments.port, arguments.register_port, arguments.metrics_port)
    return _run(processes.Addresses(*doors))


def why_not_up() -> str:
    """The sentence that says why `./run up` must not start, or nothing."""
    if not (os.environ.get("FABRICUI_SECRET_KEY") or os.environ.get("FABRICUI_SECRET_KEY_FILE")):
        return (
            "Neither FABRICUI_SECRET_KEY_FILE nor FABRICUI_SECRET_KEY is set. ./run up starts production and "
            "makes no secret by itself; docs/settings.md lists what it takes."
        )
    _django()
    from django.conf import settings

    database = Path(str(settings.DATABASES["default"]["NAME"]))
    if settings.DEMO or _is_of_a_demo(database):
        return f"The database {database} belongs to a demo. Name your own in DATABASE_URL (docs/settings.md)."
    refusal = why_not_without_second_factor()
    if refusal:
        return refusal
    import django

    django.setup()
    from audit import production

    trail = production.why_not()
    if trail:
        return "\n".join([*trail, "docs/audit.md, “Keys”, says who reads which."])
    database.parent.mkdir(parents=True, exist_ok=True)
    return ""


def why_not_without_second_factor() -> str:
    """The sentence that says why nothing is served where a password is enough, or nothing. The demo may.

    That it is a demo is said by the mark beside its database too: a variable alone opens no database of a site.
    """
    _django()
    from django.conf import settings

    if settings.MFA != "off" and settings.FRESH_LOGIN_MIN:
        return ""
    if settings.DEMO and _is_of_a_demo(Path(str(settings.DATABASES["default"]["NAME"]))):
        return ""
    return (
        "FABRICUI_MFA=off and FABRICUI_FRESH_LOGIN_MIN=0 are for the demo and for tests. Remove them: operators "
        "set up their second factor at their next login (docs/people.md)."
    )


def _is_of_a_demo(database: Path) -> bool:
    return (database.parent / "this-is-a-demo").exists()


def doctor() -> int:
    """Print one line a check, with how to mend what is wrong; return 1 when anything is."""
    bad = 0
    for program, package, what in (
        ("opensm", "opensm", "the simulated site"),
        ("ibsim", "ibsim-utils", "the simulated site"),
        ("smpquery", "infiniband-diags", "the simulated site"),
        ("sshd", "openssh-server", "the simulated site"),
        ("chromium", "chromium", "browser tests"),
    ):
        found = shutil.which(program)
        bad += not found
        print(f"{'ok  ' if found else 'MISS'} {program}: {found or f'apt-get install {package} (for {what})'}")
    try:
        broker = brokers.choose(redis_url=os.environ.get("REDIS_URL", ""), directory=Path(".fabricui"))
        print(f"ok   broker: {broker.name}")
    except brokers.NoBroker as error:
        bad += 1
        print(f"MISS broker: {error}")
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"], check=False, capture_output=True, text=True
    )
    said = (checked.stderr or checked.stdout).strip()
    bad += checked.returncode != 0
    print(f"BAD  settings: {said}" if checked.returncode else "\n".join(warnings_in_our_words(said)))
    return 1 if bad else 0


def warnings_in_our_words(said: str) -> list[str]:
    """What `check --deploy` warns of, one line each; its advice on TLS becomes a line about FABRICUI_TLS.

    What it says of the trail is what `./run up` asks for: a machine that only runs the demo needs none of it.
    """
    warnings = [line.removeprefix("?: ") for line in said.splitlines() if re.match(r".+: \(\w+\.\w+\) ", line)]
    of_trail = [line for line in warnings if line.startswith("(audit.")]
    others = [line for line in warnings if not line.startswith(_ABOUT_TLS) and line not in of_trail]
    lines = [f"note trail: {line}" for line in of_trail] or ["ok   trail"]
    lines += [f"note settings: {line}" for line in others] or ["ok   settings"]
    if any(line.startswith(_INSECURE_COOKIES) for line in warnings):
        return [*lines, "note TLS: FABRICUI_TLS is not 1, so cookies are sent without TLS too (docs/settings.md)"]
    return [*lines, "ok   TLS: cookies are sent by TLS only; to redirect to https is the task of the proxy before it"]


def _run(addresses: processes.Addresses) -> int:
    _django()
    from django.conf import settings

    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns when it is missing
    broker = brokers.choose(redis_url=settings.REDIS_URL, directory=settings.DATA_DIR)
    environment = {**os.environ, "REDIS_URL": broker.url}
    return processes.run(
        processes.commands(
            addresses=addresses,
            broker=broker,
            probes_at_once=settings.PROBES_AT_ONCE,
            register_workers=settings.REGISTER_WORKERS,
        ),
        environment=environment,
    )


def _django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")

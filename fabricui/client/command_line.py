"""The command line of `fabricui`: its words, and how each of its ends becomes an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from fabricui.client import configuration, moving, planning, reading, rolling_out
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, without_tokens

WITHIN_S: Final = 900.0
_TOKEN_WORDS: Final = "A token never stands on a command line, where everybody on the machine reads it: use FABRICUI_TOKEN_FILE."  # fmt: skip  # noqa: E501, S105


class _Parser(argparse.ArgumentParser):
    """argparse, whose errors never repeat a token that somebody put where it does not belong."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with the code for it."""
        said = without_tokens(message)
        if said != message or "--token" in message:
            said = _TOKEN_WORDS
        self.print_usage(sys.stderr)
        self.exit(int(Exit.USAGE), f"{self.prog}: {said}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Do one command; give its exit code (docs/client.md)."""
    arguments = _parser().parse_args(argv)
    printer = Printer(as_json=arguments.json, quiet=arguments.quiet)
    try:
        wanted = configuration.read(
            os.environ, url=arguments.url, ca_file=arguments.ca_file, file=arguments.config, timeout_s=arguments.timeout
        )
        exit_code: Exit = arguments.run(Door(wanted, tell=printer.tell), arguments, printer)
    except Failure as failure:
        return _failed(failure, printer)
    except KeyboardInterrupt:
        return _failed(Failure(Exit.INTERRUPTED, "Interrupted.", code="interrupted"), printer)
    except BrokenPipeError:  # the reader of the pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.DONE)
    except (KeyError, TypeError, AttributeError) as error:
        told = f"FabricUI answered something that this program does not know ({type(error).__name__}: {error})."
        mend = "See that both are of one release: docs/client.md, “Which goes with which”."
        return _failed(Failure(Exit.FAULT, told, mend=mend, code="strange_answer"), printer)
    return int(exit_code)


def _failed(failure: Failure, printer: Printer) -> int:
    printer.warn(f"fabricui: {failure.in_words()}")
    if printer.as_json:
        printer.show(failure.as_json(), ())
    return int(failure.exit_code)


def _parser() -> argparse.ArgumentParser:
    shared = _Parser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON (docs/client.md has its shape)")
    shared.add_argument("--quiet", action="store_true", help="no progress on stderr")
    shared.add_argument("--url", default="", help="where FabricUI is; else FABRICUI_URL, else the file")
    shared.add_argument("--ca-file", default="", metavar="FILE", help="the authority that signed its certificate (PEM)")
    shared.add_argument("--config", default="", metavar="FILE", help="instead of ~/.config/fabricui/client.toml")
    shared.add_argument("--timeout", type=float, metavar="S", help="seconds for one answer (30)")
    parser = _Parser(prog="fabricui", description=__doc__, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def verb(name: str, run: object, words: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, parents=[shared], help=words, description=words, allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    of_servers = verb("servers", reading.servers, "list servers, or show one with its ports")
    of_servers.add_argument("server", nargs="?", default="", metavar="SERVER", help="host name or id of one")
    of_servers.add_argument("--contains", default="", metavar="TEXT", help="a part of the host name")
    of_servers.add_argument("--partition", default="", help="that have a port in it")
    of_servers.add_argument("--rack", default="")
    of_servers.add_argument("--tenant", default="", metavar="ID", help="labelled with this tenant")
    of_servers.add_argument("--most", type=_positive, metavar="N", help="at most so many")

    of_move = verb("move", moving.move, "stage that servers move; a tenant's go out by themselves")
    of_move.add_argument("servers", nargs="+", metavar="SERVER", help="host name or id")
    where = of_move.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", default="", metavar="PARTITION", help="name or id")
    where.add_argument("--out", action="store_true", help="into none")
    leaving = of_move.add_mutually_exclusive_group()
    leaving.add_argument("--from", dest="source", metavar="PARTITION", help="what they leave")
    leaving.add_argument("--add", action="store_true", help="they stay where they are, too")
    how = of_move.add_mutually_exclusive_group()
    how.add_argument("--full", dest="membership", action="store_const", const="full", help="as full members")
    how.add_argument("--limited", dest="membership", action="store_const", const="limited", help="as limited members")
    _waiting(of_move)
    of_move.add_argument("--reason", default="", help="why, for the trail")
    of_move.add_argument("--key", type=_key, help="an Idempotency-Key of your own")

    of_plan = verb("plan", planning.plan, "draw the plan of what is staged")
    _selecting(of_plan)
    of_plan.add_argument("--no-look", action="store_true", help="on the newest look, however old")

    of_rollout = verb("rollout", rolling_out.rollout, "roll out what is staged")
    _selecting(of_rollout)
    _waiting(of_rollout)
    of_rollout.add_argument("--digest", type=_key, help="of the plan you looked at; another one is refused")
    of_rollout.add_argument("--look", type=_key, help="of that plan; only to send the same request again")
    of_rollout.add_argument("--key", type=_key, help="an Idempotency-Key: the same is started once")
    of_rollout.add_argument(
        "--accept", action="append", default=[], metavar="HAZARD", help="a hazard that is meant; may be repeated"
    )
    of_rollout.add_argument("--reason", default="", help="why, for the trail")
    of_rollout.add_argument("--confirm-within", type=_positive, metavar="S", help="taken back unless confirmed by then")
    of_rollout.add_argument(
        "--without", action="append", default=[], metavar="HOST", help="a standby that may be missing; needs a reason"
    )

    of_status = verb("status", reading.status, "how the subnets stand; or what became of a rollout")
    of_status.add_argument("rollout", nargs="?", default="", metavar="ROLLOUT", help="its id")
    _waiting(of_status)

    of_audit = verb("audit", reading.audit, "the audit trail, newest first")
    for name in reading.FILTERS:
        of_audit.add_argument(f"--{name}", default="", help=f"filter, as docs/api.md says of “{name}”")
    of_audit.add_argument("--most", type=_positive, default=50, metavar="N", help="at most so many (50)")

    of_activity = verb("activity", reading.activity, "what happened to what is your tenant's, newest first")
    for name in reading.OF_ACTIVITY:
        of_activity.add_argument(f"--{name}", default="", help=f"filter, as docs/api.md says of “{name}”")
    of_activity.add_argument("--most", type=_positive, default=50, metavar="N", help="at most so many (50)")
    return parser


def _selecting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--selection", default="mine", help="mine (the default), all, or tenant:ID")
    parser.add_argument("--subnet", default="", help="name or id, where there are several")


def _waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="until it is over; the exit code says how it ended")
    parser.add_argument("--within", type=_positive, default=WITHIN_S, metavar="S", help="how long to wait (900)")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 10**7):
        raise argparse.ArgumentTypeError("give a whole number from 1 on")
    return int(text)


def _key(text: str) -> str:
    if not 1 <= len(text) <= 200 or not all("!" <= letter <= "~" for letter in text):
        raise argparse.ArgumentTypeError("give 1 to 200 visible ASCII characters")
    return text

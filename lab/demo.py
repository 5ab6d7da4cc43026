"""The demo: the whole product on a simulated site. `--once` does the main job without a person and proves it.

Everything is real but the cables: two OpenSM on one simulated fabric, two sshd, servers that boot and register
themselves, web, workers and beat. The database of a demo is made anew at each start.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lab import data_plane
from lab.errors import LabError
from lab.free_ports import free_port, is_free
from lab.guests.guests import probe_key_file
from lab.house import DemoFailed, House
from lab.launched import living, noted
from lab.once import move_and_prove
from lab.site import Site
from subnet.errors import InvalidGUID
from subnet.guid import GUID


def main(argv: list[str]) -> int:
    """Run the demo; with `--once` return 0 only if the rollout was PROVEN."""
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--servers", type=int, default=24, help="simulated servers (default 24)")
    parser.add_argument("--hcas", type=int, default=2, help="HCAs a server (default 2)")
    parser.add_argument("--silent", type=int, default=0, metavar="N", help="stop the agents of N servers")
    parser.add_argument(
        "--dir", type=Path, default=Path(".fabricui/demo"), help="where its data lie (default .fabricui/demo)"
    )
    parser.add_argument(
        "--port", type=int, default=8000, help="port of the web door (default 8000; a free one if taken)"
    )
    parser.add_argument(
        "--rdma",
        action=argparse.BooleanOptionalAction,
        help="two RDMA guests for probes (default: when their packages are there, and never with --once)",
    )
    once = parser.add_argument_group("without a person")
    once.add_argument("--once", action="store_true", help="move a server, roll out, prove, tear down")
    once.add_argument("--json", action="store_true", help="print one JSON summary")
    once.add_argument("--move", type=int, default=1, metavar="N", help="how many servers to move (default 1)")
    once.add_argument("--out", type=Path, help="folder that keeps the tables before and after (default: a new one)")
    once.add_argument(
        "--spoil-port", type=_port_guid, metavar="GUID", help="write a foreign P_Key to this port behind our back"
    )
    arguments = parser.parse_args(argv)
    if arguments.once and arguments.rdma:
        parser.error("--once does without RDMA guests")
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell that starts it in the background ignores SIGINT
        signal.signal(number, _interrupt)
    try:
        with running(arguments) as house:
            if arguments.once:
                out = arguments.out or Path(tempfile.mkdtemp(prefix="fabricui-proof-"))
                return move_and_prove(
                    house, servers=arguments.move, spoil=arguments.spoil_port, out=out, as_json=arguments.json
                )
            print(house.welcome(), flush=True)
            with data_plane.beside(house, wanted=arguments.rdma):
                return house.wait()
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    except (DemoFailed, LabError) as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1


@contextmanager
def running(arguments: argparse.Namespace) -> Iterator[House]:
    """Yield a running and furnished house; afterwards its processes and its lab are gone.

    The folder of `--once` is a new one and is removed; that of the plain demo stays until the next start.
    """
    if arguments.once:
        folder = Path(tempfile.mkdtemp(prefix="fabricui-once-"))
        (folder / "this-is-a-demo").touch()
    else:
        folder = arguments.dir.absolute()
        _clear_away(folder)
        folder.mkdir(parents=True)
        (folder / "this-is-a-demo").touch()
    try:
        _say(f"Simulated fabric: {arguments.servers} servers with {arguments.hcas} HCAs each, two real OpenSM …")
        with (
            noted(folder, keep=not arguments.once),
            Site.up(directory=folder / "lab", servers=arguments.servers, hcas=arguments.hcas) as site,
        ):
            port = arguments.port if not arguments.once and is_free(arguments.port) else free_port()
            house = House(
                folder=folder,
                site=site,
                web_port=port,
                register_port=free_port(),
                probe_key=None if arguments.once else probe_key_file(site.layout.guests),
            )
            try:
                _say("Web, workers and beat …")
                house.start()
                _say("Servers boot and register themselves …")
                house.boot(silent=arguments.silent)
                _say("First rollout: servers into their tenants' partitions …")
                house.furnish()
                yield house
            finally:
                house.stop()
    finally:
        if arguments.once:
            shutil.rmtree(folder, ignore_errors=True)


def _clear_away(folder: Path) -> None:
    """Remove what an earlier demo has left in `folder`; raise DemoFailed when it is not ours to remove."""
    for pid, other in living():
        if other.resolve() == folder.resolve():
            raise DemoFailed(f"A demo runs in {folder} (PID {pid}). End it with Ctrl-C there, or name another --dir.")
    if folder.exists() and any(folder.iterdir()) and not (folder / "this-is-a-demo").exists():
        raise DemoFailed(f"{folder} is not empty and not a demo's folder. Name another one with --dir.")
    Site.remove(folder / "lab")
    shutil.rmtree(folder, ignore_errors=True)


def _port_guid(text: str) -> GUID:
    try:
        return GUID(text)
    except InvalidGUID as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt

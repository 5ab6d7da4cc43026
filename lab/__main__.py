"""`./run lab up | down | status | break`: the simulated site from the command line. Also behind demo and bench."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from lab import break_verbs, launched
from lab.errors import LabError
from lab.guests import guests
from lab.guests.guests import Guests, state_file
from lab.layout import DEFAULT_DIRECTORY, Layout
from lab.site import Site


def main(argv: Sequence[str] | None = None) -> int:
    """Obey one command line; 0 when done, 1 with a sentence on stderr when not, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["demo"], ["bench"]):
        return _hand_over(words[0], words[1:])
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except LabError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _hand_over(name: str, words: list[str]) -> int:
    """Run the demo or a benchmark, which need Django; the other commands do without it."""
    if name == "demo":
        from lab import demo

        return demo.main(words)
    from lab import bench

    return bench.main(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./run lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="up|down|status|break")

    up = commands.add_parser("up", help="bring the lab up; it stays until “down”")
    up.add_argument("--servers", type=int, default=24, help="servers (default 24)")
    up.add_argument("--hcas", type=int, default=2, help="HCAs in each server (default 2)")
    up.add_argument("--leaf-width", type=int, help="HCA ports of a leaf (default: 12, or 32 in a large fabric)")
    up.add_argument("--spines", type=int, default=2, help="spine switches (default 2)")
    up.add_argument("--rdma", action="store_true", help="also two emulated guests with Soft-RoCE, for probes")
    up.add_argument("--foreground", action="store_true", help="stay; Ctrl-C ends the lab")
    up.set_defaults(run=_up)

    down = commands.add_parser("down", help="end the lab, running or killed, and leave nothing of it")
    down.add_argument("--keep-files", action="store_true", help="leave configuration and logs")
    down.set_defaults(run=_down)

    status = commands.add_parser("status", help="show what runs")
    status.add_argument("--json", action="store_true", help="as JSON")
    status.set_defaults(run=_status)

    breaking = commands.add_parser("break", help="do to the lab what happens to real sites")
    break_verbs.add_to(breaking)

    for command in (up, down, status, breaking):
        command.add_argument(
            "--dir", type=Path, default=DEFAULT_DIRECTORY, help=f"the lab's directory (default {DEFAULT_DIRECTORY})"
        )
    return parser


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _up(arguments: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    try:
        site = Site.up(
            arguments.dir,
            servers=arguments.servers,
            hcas=arguments.hcas,
            leaf_width=arguments.leaf_width,
            spines=arguments.spines,
            timeout_s=90.0 + arguments.servers * arguments.hcas / 20,
        )
    except ValueError as problem:
        raise LabError(str(problem)) from None
    if arguments.rdma:
        _bring_up_guests(site)
    print(f"The lab is up after {time.monotonic() - began:.1f} s in {site.directory}.")
    _show(site)
    if not arguments.foreground:
        print("“./run lab break --help” lists what can be broken; “./run lab down” ends the lab.")
        return 0
    print("Ctrl-C ends the lab.", flush=True)
    try:
        while site.state_file.exists() and site.state.phase == "up":
            time.sleep(0.5)
        raise LabError(site.state.problem if site.state_file.exists() else "The lab was ended from elsewhere.")
    finally:
        site.down()


def _bring_up_guests(site: Site) -> None:
    """Start the RDMA guests as a part of the lab, which ends them with it; end the lab when they do not come up."""
    print("The RDMA guests start …", flush=True)
    try:
        Guests.up(site.layout.guests, mark=site.lab)
    except BaseException:
        site.down()
        raise


def _down(arguments: argparse.Namespace) -> int:
    # Without --dir: this checkout's lab, and those of demos whose launcher was killed.
    for folder in launched.clear_away() if arguments.dir == DEFAULT_DIRECTORY else []:
        print(f"The demo in {folder} was killed; nothing of it runs any more.")
    if not (arguments.dir / "lab.json").exists():
        print(f"There is no lab in {arguments.dir.absolute()}; nothing to do.")
        return 0
    guests.down(Layout(arguments.dir).guests)
    Site(arguments.dir).down(keep_files=arguments.keep_files)
    print("The lab is down; nothing of it is left." if not arguments.keep_files else "The lab is down.")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    if arguments.dir == DEFAULT_DIRECTORY and not Layout(arguments.dir).state_file.exists():
        for pid, folder in launched.living():
            raise LabError(
                f"There is no lab in {arguments.dir.absolute()}, but a demo runs (PID {pid}): "
                f"“./run lab status --dir {folder / 'lab'}” shows its lab."
            )
    site = Site.attach(arguments.dir)
    if arguments.json:
        print(json.dumps(_facts(site), indent=1))
    else:
        _show(site)
    return 0


def _facts(site: Site) -> dict[str, Any]:
    state = site.state
    sms = site.sms()
    return {
        "lab": state.lab,
        "directory": state.directory,
        "phase": state.phase,
        "servers": len(site.fabric.servers),
        "hcas": site.fabric.end_ports,
        "switches": len(site.fabric.switches),
        "managers": [
            {
                "name": manager.name,
                "ssh": f"{manager.user}@{manager.address}:{manager.ssh_port}",
                "port_guid": manager.port_guid,
                "opensm": sms.get(manager.port_guid, {}).get("state") if manager.opensm else None,
                "opensm_pid": manager.opensm.pid if manager.opensm else None,
                "sshd_pid": manager.sshd.pid if manager.sshd else None,
                "partitions": record.partitions,
                "disk": record.disk,
                "ssh_delay_ms": record.ssh_delay_ms,
            }
            for manager, record in zip(site.managers, state.managers, strict=True)
        ],
        "other_sms": [sm for guid, sm in sms.items() if guid not in {manager.port_guid for manager in site.managers}],
        "guests": _guests(site),
        "cut_links": state.cut_links,
        "processes": state.processes,
    }


def _guests(site: Site) -> list[dict[str, Any]]:
    if not state_file(site.layout.guests).exists():
        return []
    pair = Guests(site.layout.guests)
    return [
        {
            "name": guest.name,
            "ssh": f"{guest.user}@{guest.address}:{guest.ssh_port}",
            "device": guest.device,
            "node_guid": guest.node_guid,
            "data_address": guest.data_address,
            "is_running": pair.is_running,
        }
        for guest in pair.guests
    ]


def _show(site: Site) -> None:
    facts = _facts(site)
    print(f"{facts['servers']} servers, {facts['hcas']} HCA ports, {facts['switches']} switches.")
    for manager in facts["managers"]:
        role = manager["opensm"] or ("runs but does not answer" if manager["opensm_pid"] else "does not run")
        sshd = manager["ssh"] if manager["sshd_pid"] else "does not run"
        faults = "" if manager["disk"] == "whole" else f"; disk {manager['disk']}"
        faults += f"; SSH {manager['ssh_delay_ms']} ms late" if manager["ssh_delay_ms"] else ""
        print(f"{manager['name']}: OpenSM {role}; sshd {sshd}; {manager['partitions']}{faults}")
    for rogue in facts["other_sms"]:
        print(f"Unregistered SM on {rogue['port_guid']}: {rogue['state']}, priority {rogue['priority']}")
    for guest in facts["guests"]:
        state = guest["ssh"] if guest["is_running"] else "does not run"
        print(f"RDMA guest {guest['name']}: {state}; {guest['device']} {guest['node_guid']}, software: no speed")
    for node, port in facts["cut_links"]:
        print(f"Cut link: {node} port {port}")


if __name__ == "__main__":
    raise SystemExit(main())

"""The break verbs as words on the command line; `lab/breaking.py` does the work."""

import argparse
from pathlib import Path

from lab import breaking, servers
from lab.errors import LabError
from lab.fabric import HCA
from lab.site import Site
from subnet.errors import SubnetError
from subnet.guid import GUID

_MANAGER_VERBS = {
    "kill-sm": (breaking.kill_opensm, "kill OpenSM (SIGKILL)"),
    "end-sm": (breaking.end_opensm, "stop OpenSM in an orderly way (SIGTERM)"),
    "stop-sm": (breaking.freeze_opensm, "freeze OpenSM (SIGSTOP)"),
    "continue-sm": (breaking.unfreeze_opensm, "let a frozen OpenSM go on"),
    "reload-sm": (breaking.reload_opensm, "ask OpenSM for a heavy sweep (SIGHUP)"),
    "stop-sshd": (breaking.end_sshd, "stop sshd with its sessions"),
    "start-sshd": (breaking.start_sshd, "start sshd again"),
    "restore-host-key": (breaking.restore_host_key, "give the enrolled host key back"),
    "fill-disk": (breaking.fill_disk, "fill the disk under the partition file"),
    "read-only-disk": (breaking.make_disk_read_only, "make that disk read-only"),
    "mend-disk": (breaking.mend_disk, "give the disk back"),
}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add every break verb to `parser`; each sets `run`, which returns the exit status."""
    verbs = parser.add_subparsers(required=True, metavar="VERB", title="verbs")
    for word, (function, text) in _MANAGER_VERBS.items():
        verb = verbs.add_parser(word, help=text)
        verb.add_argument("manager", help="manager host: sm-a or sm-b")
        verb.set_defaults(run=_on_manager, function=function)
    for word, starter, text in (
        ("start-sm", breaking.start_opensm, "start OpenSM"),
        ("restart-sm", breaking.restart_opensm, "restart OpenSM, with another -P if given"),
    ):
        start = verbs.add_parser(word, help=text)
        start.add_argument("manager", help="manager host: sm-a or sm-b")
        start.add_argument("--partitions", type=Path, help="another -P than the file FabricUI writes")
        start.set_defaults(run=_start, function=starter)
    slow = verbs.add_parser("slow-ssh", help="make every byte of SSH late; 0 makes it fast again")
    slow.add_argument("manager", help="manager host: sm-a or sm-b")
    slow.add_argument("--delay-ms", type=int, default=250, help="each way (default 250)")
    slow.set_defaults(run=_slow)
    key = verbs.add_parser("host-key", help="give the host another host key")
    key.add_argument("manager", help="manager host: sm-a or sm-b")
    key.set_defaults(run=_change_key)
    replace = verbs.add_parser("replace-file", help="change the partition file by hand")
    replace.add_argument("manager", help="manager host: sm-a or sm-b")
    replace.add_argument("how", choices=("crlf", "empty", "edit"), nargs="?", default="edit")
    replace.add_argument("--file", type=Path, help="the bytes of this file instead")
    replace.set_defaults(run=_replace)
    _add_fabric_verbs(verbs)
    for verb in verbs.choices.values():
        # Also after the verb; suppressed so that it does not undo the one before it.
        verb.add_argument("--dir", type=Path, default=argparse.SUPPRESS, help="the lab's directory")


def _add_fabric_verbs(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for word, function, text in (
        ("cut-link", breaking.cut_link, "cut the cable of an HCA"),
        ("restore-link", breaking.restore_link, "plug it in again"),
    ):
        link = verbs.add_parser(word, help=text)
        link.add_argument("port", help="a port GUID, or a host name with an HCA number: srv-001:0")
        link.set_defaults(run=_link, function=function)
    again = verbs.add_parser("reboot", help="boot a server again: a new boot id, and what its ports are now")
    again.add_argument("server", help="a host name: srv-001")
    again.set_defaults(run=_reboot)
    rogue = verbs.add_parser("start-rogue", help="start a third OpenSM on a server")
    rogue.add_argument("--server", help="default: the last one")
    rogue.add_argument("--priority", type=int, default=breaking.ROGUE_PRIORITY)
    rogue.set_defaults(run=_start_rogue)
    stop = verbs.add_parser("stop-rogue", help="end the third OpenSM")
    stop.add_argument("--kill", action="store_true", help="by SIGKILL")
    stop.set_defaults(run=_stop_rogue)
    spoil = verbs.add_parser("spoil-port", help="write a P_Key into a port behind the SM's back")
    spoil.add_argument("port", help="a port GUID, or a host name with an HCA number: srv-001:0")
    spoil.add_argument("--entry", type=lambda text: int(text, 16), default=breaking.FOREIGN_ENTRY, help="0x8abc")
    spoil.add_argument("--index", type=int, help="default: the last index of the port")
    spoil.set_defaults(run=_spoil)


def _site(arguments: argparse.Namespace) -> Site:
    return Site.attach(arguments.dir)


def _said(text: str = "Done.") -> int:
    print(text)
    return 0


def _on_manager(arguments: argparse.Namespace) -> int:
    arguments.function(_site(arguments), arguments.manager)
    return _said()


def _start(arguments: argparse.Namespace) -> int:
    arguments.function(_site(arguments), arguments.manager, partitions=arguments.partitions)
    return _said()


def _slow(arguments: argparse.Namespace) -> int:
    breaking.slow_ssh(_site(arguments), arguments.manager, delay_ms=arguments.delay_ms)
    return _said()


def _change_key(arguments: argparse.Namespace) -> int:
    public = breaking.change_host_key(_site(arguments), arguments.manager)
    return _said(f"{arguments.manager} now answers with {public}.")


def _link(arguments: argparse.Namespace) -> int:
    site = _site(arguments)
    arguments.function(site, _hca(site, arguments.port))
    return _said()


def _reboot(arguments: argparse.Namespace) -> int:
    site = _site(arguments)
    servers.reboot(site, site.fabric.server(arguments.server))
    return _said(f"{arguments.server} has booted again and reported.")


def _stop_rogue(arguments: argparse.Namespace) -> int:
    breaking.end_rogue(_site(arguments), kill=arguments.kill)
    return _said()


def _replace(arguments: argparse.Namespace) -> int:
    content = arguments.file.read_bytes() if arguments.file else None
    written = breaking.replace_file(_site(arguments), arguments.manager, arguments.how, content=content)
    return _said(f"Wrote {len(written)} bytes. OpenSM reads them at its next heavy sweep (break reload-sm).")


def _start_rogue(arguments: argparse.Namespace) -> int:
    guid = breaking.start_rogue(_site(arguments), hostname=arguments.server, priority=arguments.priority)
    return _said(f"A third OpenSM runs on {guid} at priority {arguments.priority}.")


def _spoil(arguments: argparse.Namespace) -> int:
    site = _site(arguments)
    hca = _hca(site, arguments.port)
    index = breaking.spoil_port(site, hca.port_guid, entry=arguments.entry, index=arguments.index)
    return _said(f"Wrote 0x{arguments.entry:04x} at index {index} of {hca.port_guid} ({hca.description}).")


def _hca(site: Site, text: str) -> HCA:
    """The HCA that a port GUID or `HOSTNAME:NUMBER` names; raise LabError when there is none."""
    hostname, _, number = text.rpartition(":")
    boxes = {box.hostname: box for box in site.fabric.servers + site.fabric.managers}
    try:
        return boxes[hostname].hcas[int(number)] if hostname in boxes else site.fabric.hca_of_port(GUID(text))
    except (LookupError, ValueError, SubnetError):
        raise LabError(
            f"The lab has no HCA “{text}”. Write a port GUID, or a host name and a number as in srv-001:0."
        ) from None

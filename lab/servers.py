"""Servers that boot: each gets a /sys/class/infiniband tree as the fabric is now and runs the real agent on it."""

import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.fabric import HCA, Box
from lab.layout import python_environment, repository
from lab.site import Site
from subnet.guid import GUID

AGENT = "inventory/agent.py"
TABLE_SIZE = 64
_STATES = {"DOWN": "1: DOWN", "INIT": "2: INIT", "ARMED": "3: ARMED", "ACTIVE": "4: ACTIVE"}
_PHYS_STATES = {"Polling": "2: Polling", "Disabled": "3: Disabled", "LinkUp": "5: LinkUp"}
_UNPLUGGED: Mapping[str, Any] = {"lid": 0, "sm_lid": 0, "state": "DOWN", "phys_state": "Polling", "pkeys": {}}


def boot(
    site: Site, servers: Box | Sequence[Box], *, url: str, token: str, timeout_s: float = 60.0, at_once: int = 4
) -> None:
    """Boot servers: write each one's sysfs tree from one reading of the fabric and run the agent until it reported.

    Every boot has a new boot id; the machine id and the credential stay with the server. `url` is the registration
    door with or without `/register/v1/`. Raises LabError naming the servers whose agent failed, and why.
    """
    booting = [servers] if isinstance(servers, Box) else list(servers)
    for server in booting:
        _boot_id_file(site, server).parent.mkdir(parents=True, exist_ok=True)
        _boot_id_file(site, server).write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    report(site, booting, url=url, token=token, timeout_s=timeout_s, at_once=at_once)


def report(
    site: Site, booting: Sequence[Box], *, url: str, token: str, timeout_s: float = 60.0, at_once: int = 4
) -> None:
    """Let servers that have booted report once more, as the fabric is now: the same boot id, so it is no reboot.

    Raises LabError as `boot` does.
    """
    door_file(site).write_text(url + "\n", encoding="ascii")  # where `reboot` reports
    reading = site.read_ports([guid for server in booting for guid in server.port_guids])
    for server in booting:
        write_tree(sysfs_root(site, server), server, reading)
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        ended = list(
            pool.map(lambda server: run_agent(site, server, url=url, token=token, timeout_s=timeout_s), booting)
        )
    failed = [
        f"{server.hostname}: {said.strip().splitlines()[-1] if said.strip() else 'no word'}"
        for server, (status, said) in zip(booting, ended, strict=True)
        if status != 0
    ]
    if failed:
        raise LabError(f"{len(failed)} of {len(booting)} servers did not register. " + "; ".join(failed[:5]))


def reboot(site: Site, server: Box, *, timeout_s: float = 60.0) -> None:
    """Boot a server again that has registered: a new boot id, the fabric as it is now, the same credential.

    Raises LabError when no server of this lab has booted yet, or when its agent fails.
    """
    known = door_file(site)
    if not known.exists() or not (site.layout.servers / server.hostname / "credential").exists():
        raise LabError(f"{server.hostname} has not booted in this lab, so it cannot boot again.")
    boot(site, server, url=known.read_text(encoding="ascii").strip(), token="", timeout_s=timeout_s)


def door_file(site: Site) -> Path:
    """The file that remembers the registration door of the last boot."""
    return site.layout.servers / "door"


def sysfs_root(site: Site, server: Box) -> Path:
    """Where the tree of a server lies: the folder to give the agent as `--sysfs-root`."""
    return site.layout.servers / server.hostname / "sys"


def _boot_id_file(site: Site, server: Box) -> Path:
    """The file, beside the server's credential, that keeps the id of its last boot."""
    return site.layout.servers / server.hostname / "boot-id"


def run_agent(
    site: Site, server: Box, *, url: str, token: str, timeout_s: float, arguments: Sequence[str] = ()
) -> tuple[int, str]:
    """Run the agent of a server that has booted and has a tree; its exit status and what it said."""
    home = site.layout.servers / server.hostname
    token_file = home / "enrolment-token"
    token_file.write_text(token + "\n", encoding="ascii")
    token_file.chmod(0o600)
    boot_id = _boot_id_file(site, server).read_text(encoding="ascii").strip()
    command = [sys.executable, "-I", "-S", str(repository() / AGENT)]
    command += ["--url", url.rstrip("/").removesuffix("/register/v1"), "--sysfs-root", str(sysfs_root(site, server))]
    command += ["--hostname", server.hostname, "--boot-id", boot_id]
    command += ["--machine-id", uuid.uuid5(uuid.NAMESPACE_OID, server.system_guid).hex]
    command += ["--enrolment-token-file", str(token_file), "--credential-file", str(home / "credential")]
    command += ["--attempts", "4", "--backoff-s", "0.5", *arguments]
    try:
        done = subprocess.run(
            command,
            env=python_environment(site.lab),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"the agent did not end within {timeout_s:.0f} s"
    return done.returncode, done.stderr


def write_tree(root: Path, server: Box, reading: Mapping[GUID, Mapping[str, Any]]) -> None:
    """Write `class/infiniband` below `root` as the kernel shows it; a port that was not read is unplugged."""
    shutil.rmtree(root, ignore_errors=True)
    for hca in server.hcas:
        device = root / "class" / "infiniband" / hca.device
        for path, content in _files(hca, reading.get(hca.port_guid, _UNPLUGGED)).items():
            file = device / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content + "\n", encoding="ascii")


def _files(hca: HCA, port: Mapping[str, Any]) -> dict[str, str]:
    """The files of one HCA by their path below the device's folder."""
    entries = {int(index): entry for index, entry in port["pkeys"].items()}
    files = {
        "node_guid": _words(hca.node_guid),
        "sys_image_guid": _words(hca.system_guid),
        "node_desc": hca.description,
        "node_type": "1: CA",
        "hca_type": "MT4123",
        "board_id": "MT_0000000222",
        "fw_ver": "20.39.1002",
        "ports/1/link_layer": "InfiniBand",
        "ports/1/gids/0": f"fe80:0000:0000:0000:{_words(hca.port_guid)}",
        "ports/1/state": _STATES.get(port["state"], "0: NOP"),
        "ports/1/phys_state": _PHYS_STATES.get(port["phys_state"], "4: Training"),
        "ports/1/lid": f"0x{port['lid']:x}",
        "ports/1/sm_lid": f"0x{port['sm_lid']:x}",
        "ports/1/lid_mask_count": "0",
        "ports/1/cap_mask": "0xa651e848",
        "ports/1/rate": "200 Gb/sec (4X HDR)" if port["state"] != "DOWN" else "10 Gb/sec (4X SDR)",
    }
    for index in range(int(port.get("capacity", TABLE_SIZE))):
        files[f"ports/1/pkeys/{index}"] = f"0x{entries.get(index, 0):04x}"
    return files


def _words(guid: GUID) -> str:
    """A GUID as sysfs spells it: four words of four digits."""
    digits = guid[2:]
    return ":".join(digits[place : place + 4] for place in range(0, 16, 4))

#!/usr/bin/env python3
"""Tell FabricUI which InfiniBand ports this server has.

One file, Python 3.6 or newer, standard library only. It reads /sys/class/infiniband and nothing else of the fabric,
sends what it read to FabricUI's registration door, and ends. A file that is missing, unreadable or odd costs its own
field only. See docs/registration.md.

Exit status: 0 reported, 1 refused (the sentence says why), 2 misused, 3 FabricUI was not reached.
"""

import argparse
import errno
import hashlib
import ipaddress
import json
import os
import random
import re
import secrets
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Tuple

AGENT_VERSION = "2"
SCHEMA = 1
DOOR = "/register/v1"  # may stand in --url or be left out
LAST_UNICAST_LID = 0xBFFF
MOST_BYTES = 4096  # of one sysfs file; the kernel gives at most a page
MOST_ANSWER = 1024 * 1024
MOST_PAUSE_S = 300.0
MOST_SKIPPED = 1000
MOST_COUNTERS = 128  # of one port

GUID_WORDS = re.compile(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{4}):([0-9a-fA-F]{4}):([0-9a-fA-F]{4})$")
GID_WORDS = re.compile(r"((?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}):((?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4})$")
RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*Gb/sec")
DIGITS = re.compile(r"[0-9]{1,9}$")
COUNT = re.compile(r"[0-9]{1,20}$")
NOBODYS = ("0x" + "0" * 16, "0x" + "f" * 16)


Values = Dict[str, Any]  # a JSON object
NaturalKey = List[Tuple[int, int, str]]


class Refused(Exception):
    """FabricUI said no; asking again will not help."""


class NotReached(Exception):
    """FabricUI did not answer, or not in a way that means anything."""


# --- reading the tree ------------------------------------------------------------------------------------------------


class Tree:
    """The InfiniBand class directory, and what of it had to be skipped."""

    def __init__(self, root: str) -> None:
        # A root that holds `class` is a whole /sys; any other is the class directory itself.
        whole = os.path.isdir(os.path.join(root, "class"))
        self.top = os.path.join(root, "class", "infiniband") if whole else root
        self.dmi = os.path.join(root, "class", "dmi", "id") if whole else None
        self.skipped = []  # type: List[Values]

    def skip(self, path: str, reason: str) -> None:
        """Remember that `path` gave nothing, and why."""
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append({"path": printable(path), "reason": printable(reason)})

    def names(self, path: str) -> List[str]:
        """The entries of a directory, in order; none when it cannot be read."""
        try:
            return sorted(os.listdir(os.path.join(self.top, path)), key=natural)
        except OSError as error:
            self.skip(path, reason_of(error))
            return []

    def text(self, path: str, is_needed: bool = True) -> Optional[str]:
        """The content of a file without blanks around it, or None."""
        try:
            return printable(read_small(os.path.join(self.top, path)))
        except OSError as error:
            if is_needed or error.errno != errno.ENOENT:
                self.skip(path, reason_of(error))
            return None

    def parsed(self, path: str, parse: Callable[[str], Any]) -> Any:
        """What `parse` makes of a file's content, or None; a content it refuses is skipped."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.skip(path, str(error))
            return None


def read_small(path: str) -> str:
    """At most 4096 bytes of a file as text; never waits for a pipe somebody put in its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(descriptor, MOST_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def reason_of(error: OSError) -> str:
    """An OSError in two words: its symbol and what it means."""
    number = error.errno or 0
    return "{}: {}".format(errno.errorcode.get(number, str(number)), os.strerror(number))


def printable(text: str) -> str:
    """`text` on one line, stripped, at most 255 characters, with “?” for what cannot be printed."""
    return "".join(char if char.isprintable() else "?" for char in text.strip()[:255])


def natural(name: str) -> NaturalKey:
    """A sort key under which mlx5_10 comes after mlx5_9 and index 10 after 9."""
    return [(0, int(part), "") if DIGITS.match(part) else (1, 0, part) for part in re.split("([0-9]+)", name) if part]


def guid(text: str) -> Optional[str]:
    """A GUID as `0x` and 16 digits, or None for zero and all ones; sysfs writes 0002:c903:000a:0001."""
    match = GUID_WORDS.match(text)
    if not match:
        raise ValueError("“{}” is not a GUID".format(text[:60]))
    found = "0x" + "".join(match.groups()).lower()
    return None if found in NOBODYS else found


def gid(text: str) -> Tuple[Optional[str], Optional[str]]:
    """The two halves of a GID, each as a GUID or None."""
    match = GID_WORDS.match(text)
    if not match:
        raise ValueError("“{}” is not a GID".format(text[:60]))
    return guid(match.group(1)), guid(match.group(2))


def lid_number(text: str) -> int:
    """A LID as a number."""
    number = int(text, 0)
    if not 0 <= number <= 0xFFFF:
        raise ValueError("“{}” is not a LID".format(text[:60]))
    return number


def unicast_lid(text: str) -> Optional[int]:
    """A LID as a number, None for zero (none assigned)."""
    number = lid_number(text)
    if number > LAST_UNICAST_LID:
        raise ValueError("0x{:04x} is outside the unicast range 0x0001–0xbfff".format(number))
    return number or None


def sm_lid_number(text: str) -> int:
    """The SM's LID as a number; zero says that the port knows no subnet manager."""
    return unicast_lid(text) or 0


def state_word(text: str) -> str:
    """`4: ACTIVE` → `ACTIVE`."""
    word = text.partition(":")[2].strip() if ":" in text else text
    if not word:
        raise ValueError("“{}” is not a state".format(text[:60]))
    return word[:20]


def rate_gbps(text: str) -> float:
    """`200 Gb/sec (4X HDR)` → 200.0."""
    match = RATE.match(text)
    if not match:
        raise ValueError("“{}” is not a rate".format(text[:60]))
    return float(match.group(1))


def pkey_entry(text: str) -> Optional[str]:
    """One entry of a P_Key table, None for an empty slot."""
    number = int(text, 16)
    if not 0 <= number <= 0xFFFF:
        raise ValueError("“{}” is not a P_Key table entry".format(text[:60]))
    return "0x{:04x}".format(number) if number & 0x7FFF else None


def read_report(root: str, machine: Values) -> Values:
    """The report of everything under `root`; `machine` gives hostname, boot_id and the like."""
    tree = Tree(root)
    ports = []  # type: List[Values]
    note = None  # type: Optional[str]
    if not os.path.isdir(tree.top):
        note = "no devices: {} does not exist; is the InfiniBand driver loaded?".format(tree.top)
    else:
        for device in tree.names(""):
            if os.path.isdir(os.path.join(tree.top, device)):
                ports.extend(read_device(tree, device))
        if not ports:
            note = "no devices: {} holds no HCA with a port".format(tree.top)
    report = {"schema": SCHEMA, "agent_version": AGENT_VERSION, "os": operating_system()}  # type: Values
    report["serial"] = serial_number(tree)
    report.update(machine)
    report.update({"ports": ports, "skipped": tree.skipped, "note": printable(note) if note else None})
    return report


def read_device(tree: Tree, device: str) -> List[Values]:
    """The ports of one HCA."""
    shared = {  # type: Values
        "device": printable(device)[:64],
        "node_guid": tree.parsed(device + "/node_guid", guid),
        "system_image_guid": tree.parsed(device + "/sys_image_guid", guid),
        "node_type": tree.text(device + "/node_type", is_needed=False),
        "hca_type": tree.text(device + "/hca_type", is_needed=False),
        "board_id": tree.text(device + "/board_id", is_needed=False),
        "firmware": tree.text(device + "/fw_ver", is_needed=False),
        "driver": driver_of(tree, device),
    }
    numbers = [name for name in tree.names(device + "/ports") if DIGITS.match(name) and 1 <= int(name) <= 255]
    return [dict(shared, **read_port(tree, "{}/ports/{}".format(device, name), int(name), shared)) for name in numbers]


def read_port(tree: Tree, path: str, number: int, shared: Values) -> Values:
    """One port. Its GUID is the lower half of GID 0, never a sum: firmware may number ports as it likes."""
    link_layer = tree.text(path + "/link_layer")
    is_infiniband = link_layer is not None and link_layer.lower() == "infiniband"
    prefix = port_guid = None
    if link_layer is None or is_infiniband:
        # An Ethernet port's GID 0 comes from its MAC or IP address; it names no InfiniBand port.
        prefix, port_guid = tree.parsed(path + "/gids/0", gid) or (None, None)
    rate_text = tree.text(path + "/rate")
    rate = None
    if rate_text is not None:
        try:
            rate = rate_gbps(rate_text)
        except ValueError as error:
            tree.skip(path + "/rate", str(error))
    why_not = None
    if link_layer is None:
        why_not = "the link layer cannot be read"
    elif not is_infiniband:
        why_not = "{} port: only InfiniBand ports can be in a partition".format(link_layer)
    elif shared["node_type"] is not None and not shared["node_type"].startswith("1"):
        why_not = "not a channel adapter but {}".format(shared["node_type"])
    elif port_guid is None:
        why_not = "the port GUID cannot be read"
    return {
        "port": number,
        "link_layer": None if link_layer is None else link_layer[:20],
        "port_guid": port_guid,
        "subnet_prefix": prefix,
        "state": tree.parsed(path + "/state", state_word),
        "phys_state": tree.parsed(path + "/phys_state", state_word),
        "rate_gbps": rate,
        "rate_text": None if rate_text is None else rate_text[:60],
        "lid": tree.parsed(path + "/lid", unicast_lid),
        "sm_lid": tree.parsed(path + "/sm_lid", sm_lid_number),
        "pkeys": read_pkeys(tree, path + "/pkeys"),
        "counters": read_counters(tree, path),
        "partition_candidate": why_not is None,
        "why_not": None if why_not is None else printable(why_not),
    }


def read_pkeys(tree: Tree, path: str) -> Dict[str, str]:
    """The P_Key table without its empty slots, by index."""
    entries = {}  # type: Dict[str, str]
    for name in tree.names(path):
        if DIGITS.match(name) and int(name) <= 0xFFFF:
            entry = tree.parsed("{}/{}".format(path, name), pkey_entry)
            if entry is not None:
                entries[str(int(name))] = entry
    return entries


def read_counters(tree: Tree, path: str) -> Dict[str, int]:
    """The counters that the port has, by name; which there are depends on HCA and driver."""
    found = {}  # type: Dict[str, int]
    for folder in ("counters", "hw_counters"):
        if not os.path.isdir(os.path.join(tree.top, path, folder)):
            continue
        for name in tree.names("{}/{}".format(path, folder)):
            # hw_counters/lifespan is a setting: how long the driver keeps what it read
            if len(found) < MOST_COUNTERS and name != "lifespan":
                number = tree.parsed("{}/{}/{}".format(path, folder, name), counter)
                if number is not None:
                    found[printable(name)[:64]] = number
    return found


def counter(text: str) -> int:
    """A counter as a number of at most 64 bits."""
    if not COUNT.match(text) or int(text) >= 2**64:
        raise ValueError("“{}” is not a counter".format(text[:60]))
    return int(text)


def driver_of(tree: Tree, device: str) -> Optional[str]:
    """The kernel driver's name, or None."""
    try:
        return printable(os.path.basename(os.readlink(os.path.join(tree.top, device, "device", "driver"))))
    except OSError:
        return None


def serial_number(tree: Tree) -> Optional[str]:
    """The machine's serial number, where it may be read (as root)."""
    if tree.dmi is None:
        return None
    path = os.path.join(tree.dmi, "product_serial")
    try:
        return printable(read_small(path)) or None
    except OSError as error:
        if error.errno != errno.ENOENT:
            tree.skip(path, reason_of(error))
        return None


def operating_system() -> Optional[str]:
    """What /etc/os-release calls itself, or None."""
    try:
        for line in read_small("/etc/os-release").splitlines():
            if line.startswith("PRETTY_NAME="):
                return printable(line.partition("=")[2].strip().strip("\"'"))
    except OSError:
        pass
    return None


def first_line(path: str) -> str:
    """The first line of a file, or the empty text."""
    try:
        return printable(read_small(path).split("\n")[0])
    except OSError:
        return ""


def machine_facts(options: argparse.Namespace) -> Values:
    """Host name, boot id and machine id; options come before the machine's own, for simulated servers."""
    machine_id = options.machine_id or first_line("/etc/machine-id")
    return {
        "hostname": options.hostname or socket.gethostname(),
        "boot_id": options.boot_id or first_line("/proc/sys/kernel/random/boot_id"),
        # systemd asks that the id itself stays on the machine; a hash of it still tells clones
        "machine_id": hashlib.sha256(("fabricui " + machine_id).encode()).hexdigest()[:32] if machine_id else None,
    }


# --- talking to FabricUI ---------------------------------------------------------------------------------------------


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the credential to an address nobody pinned."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


class Door:
    """FabricUI's registration door: at most `attempts` tries for each request, with growing, random pauses."""

    def __init__(self, url: str, ca_file: Optional[str], attempts: int, backoff_s: float, timeout_s: float) -> None:
        base = url.rstrip("/")
        self.base = base + "/" if base.endswith(DOOR) else base + DOOR + "/"
        self.attempts = attempts
        self.backoff_s = backoff_s
        self.timeout_s = timeout_s
        # A host's proxy settings are for the world outside; the management network is reached directly.
        handlers = [urllib.request.ProxyHandler({}), NoRedirects()]  # type: List[urllib.request.BaseHandler]
        if url.startswith("https:"):
            # With --ca-file only that CA is trusted; the host's own list of CAs is not read.
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
        self.opener = urllib.request.build_opener(*handlers)

    def post(self, name: str, secret: str, value: Values) -> Values:
        """The answer to `value` posted at `name`; raise Refused or NotReached."""
        body = json.dumps(value).encode("utf-8")
        cause = ""
        asked_s = 0.0  # how long the door itself asked to wait
        for attempt in range(self.attempts):
            if attempt:
                jitter = random.uniform(0, min(MOST_PAUSE_S, self.backoff_s * 2 ** (attempt - 1)))  # noqa: S311
                time.sleep(min(MOST_PAUSE_S, asked_s + jitter))
            asked_s = 0.0
            request = urllib.request.Request(self.base + name, data=body, method="POST")  # noqa: S310  checked_url
            request.add_header("Content-Type", "application/json")
            request.add_header("Authorization", "Bearer " + secret)
            try:
                with self.opener.open(request, timeout=self.timeout_s) as answer:
                    found = json.loads(answer.read(MOST_ANSWER).decode("utf-8"))
                    if isinstance(found, dict):
                        return found
                    cause = "{} answered something else than FabricUI does".format(self.base + name)
            except urllib.error.HTTPError as error:
                cause = "{} answered {}: {}".format(self.base + name, error.code, sentence_of(error))
                if error.code < 500 and error.code not in (408, 429):
                    raise Refused(cause) from error
                asked = str(error.headers.get("Retry-After", "")) if error.headers else ""
                asked_s = float(asked) if DIGITS.match(asked) else 0.0
            except (OSError, ValueError, EOFError) as error:
                cause = "{} was not reached: {}".format(self.base + name, error)
            except Exception as error:  # http.client's own family: a garbled or cut answer
                cause = "{} did not answer in HTTP: {!r}".format(self.base + name, error)
            say("attempt {} of {}: {}".format(attempt + 1, self.attempts, cause))
        raise NotReached(cause)


def sentence_of(error: urllib.error.HTTPError) -> str:
    """The sentence in FabricUI's refusal, or the beginning of whatever else answered."""
    try:
        body = error.read(MOST_BYTES).decode("utf-8", "replace")
    except Exception:
        return str(error.reason)
    try:
        return printable(json.loads(body)["sentence"])
    except (ValueError, KeyError, TypeError):
        return printable(body) or str(error.reason)


def credential_of(options: argparse.Namespace, door: Door, machine: Values) -> str:
    """This server's own secret; enrols first if it has none that FabricUI knows.

    The secret is made here and written down before its digest is sent: if the answer is lost, the next try sends the
    same one and FabricUI finds it enrolled.
    """
    stored = load_credential(options.credential_file)
    if stored is not None and stored.get("enrolled"):
        return str(stored["credential"])
    if not options.enrolment_token_file:
        raise Refused(
            "This server has not enrolled. Put an enrolment token into a file and name it with --enrolment-token-file."
        )
    token = first_line(options.enrolment_token_file)
    if not token:
        raise Refused("The enrolment token file {} is missing or empty.".format(options.enrolment_token_file))
    secret = stored["credential"] if stored else secrets.token_urlsafe(32)
    store_credential(options.credential_file, secret, False)
    door.post(
        "enrol",
        token,
        {
            "schema": SCHEMA,
            "hostname": machine["hostname"],
            "boot_id": machine["boot_id"],
            "credential_digest": hashlib.sha256(secret.encode("ascii")).hexdigest(),
        },
    )
    store_credential(options.credential_file, secret, True)
    say("enrolled as {}".format(machine["hostname"]))
    return secret


def rotate(options: argparse.Namespace, door: Door, secret: str) -> None:
    """Take a new secret in place of `secret`; FabricUI asks for it from time to time.

    The new one is written down before its digest is sent, and FabricUI takes the old one until the new one is shown: a
    lost answer costs nothing, the next run announces the same one again.
    """
    stored = load_credential(options.credential_file) or {}
    successor = stored.get("next")
    if not isinstance(successor, str):
        successor = secrets.token_urlsafe(32)
        store_credential(options.credential_file, secret, True, successor)
    digest = hashlib.sha256(successor.encode("ascii")).hexdigest()
    door.post("rotate", secret, {"schema": SCHEMA, "credential_digest": digest})
    store_credential(options.credential_file, successor, True)
    say("has a new credential")


def load_credential(path: str) -> Optional[Values]:
    """What `store_credential` wrote, or None."""
    try:
        with open(path, encoding="ascii") as file:
            stored = json.load(file)  # type: Values
        return stored if isinstance(stored.get("credential"), str) else None
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError) as error:
        raise Refused("{} is not a credential file. Remove it and enrol anew.".format(path)) from error
    except OSError as error:
        raise Refused("The credential file {} cannot be read: {}.".format(path, error.strerror)) from error


def store_credential(path: str, secret: str, is_enrolled: bool, successor: Optional[str] = None) -> None:
    """Write the secret, and the one to come, so that only its owner can read it, whole or not at all."""
    stored = {"credential": secret, "enrolled": is_enrolled}  # type: Values
    if successor is not None:
        stored["next"] = successor
    beside = "{}.{}.new".format(path, os.getpid())
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(stored, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError as error:
        raise Refused("The credential file {} cannot be written: {}.".format(path, error.strerror)) from error


def say(sentence: str) -> None:
    """One line for the journal."""
    print("fabricui-agent: " + sentence, file=sys.stderr)


def checked_url(text: str) -> str:
    """`text` if it is an address the credential may be sent to: https, or http on this very machine."""
    parts = urllib.parse.urlparse(text)
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise argparse.ArgumentTypeError("{} is no http or https address".format(text))
    if parts.scheme == "http":
        try:
            is_here = ipaddress.ip_address(parts.hostname).is_loopback
        except ValueError:
            is_here = parts.hostname == "localhost"
        if not is_here:
            raise argparse.ArgumentTypeError("{} is not https, so the credential could be read on its way".format(text))
    return text


def parsed_options(arguments: Optional[List[str]]) -> argparse.Namespace:
    """The command line; what names the machine may stand in the environment too."""
    env = os.environ.get
    parser = argparse.ArgumentParser(description="Tell FabricUI which InfiniBand ports this server has.")
    parser.add_argument("--url", type=checked_url, default=None, help="FabricUI's registration door, https://HOST:PORT")
    parser.add_argument("--ca-file", default=None, help="trust this CA (PEM) and no other; needed with https")
    parser.add_argument("--enrolment-token-file", default=None, help="needed until the server has enrolled")
    parser.add_argument("--credential-file", default="/var/lib/fabricui-agent/credential")
    parser.add_argument("--sysfs-root", default="/sys", help="a whole /sys, or its class/infiniband alone")
    parser.add_argument("--dry-run", action="store_true", help="print the JSON and send nothing")
    parser.add_argument("--attempts", type=int, default=8, help="tries for each request (default 8)")
    parser.add_argument("--backoff-s", type=float, default=2.0, help="longest first pause; doubles each time, to 300 s")
    parser.add_argument("--timeout-s", type=float, default=20.0, help="for each try")
    parser.add_argument("--hostname", default=env("FABRICUI_AGENT_HOSTNAME"))
    parser.add_argument("--boot-id", default=env("FABRICUI_AGENT_BOOT_ID"))
    parser.add_argument("--machine-id", default=env("FABRICUI_AGENT_MACHINE_ID"))
    options = parser.parse_args(arguments)
    if options.attempts < 1 or options.backoff_s < 0 or options.timeout_s <= 0:
        parser.error("--attempts, --backoff-s and --timeout-s must be positive")
    if not options.dry_run and not options.url:
        parser.error("--url is needed (or --dry-run)")
    if not options.dry_run and options.url.startswith("https:") and not options.ca_file:
        # Without a file Python would trust every CA that the host trusts; an unset variable must not lead there.
        parser.error("--ca-file is needed with https: the CA that signed the registration door's certificate")
    return options


def main(arguments: Optional[List[str]] = None) -> int:
    """Read, report, say what became of each port; give the exit status."""
    options = parsed_options(arguments)
    machine = machine_facts(options)
    report = read_report(options.sysfs_root, machine)
    if options.dry_run:
        print(json.dumps(report, indent=2))
        return 0
    try:
        door = Door(options.url, options.ca_file, options.attempts, options.backoff_s, options.timeout_s)
        secret = credential_of(options, door, machine)
        answer = door.post("reports", secret, report)
    except Refused as error:
        say(str(error))
        return 1
    except NotReached as error:
        say(str(error))
        return 3
    except (OSError, ValueError) as error:  # a CA file that cannot be read, a header that cannot be sent
        say("cannot send: {}".format(error))
        return 1
    for port in answer.get("ports", []):
        line = "{device} port {port} {port_guid}: {outcome}".format(**port)
        say(line + (". " + port["sentence"] if port.get("sentence") else ""))
    if answer.get("sentence"):
        say(answer["sentence"])
    if answer.get("rotate") is True:
        try:
            rotate(options, door, secret)
        except (Refused, NotReached, OSError, ValueError) as error:
            say("keeps its credential for now: {}".format(error))  # the report stands all the same
    return 0


if __name__ == "__main__":
    sys.exit(main())

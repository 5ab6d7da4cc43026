"""The systemd units of docs/systemd: what they start is what `./run up` starts, and each sees only its own key."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from fabricui import broker as brokers
from fabricui import processes

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "docs" / "systemd"
SERVICES = sorted(path.stem.removeprefix("fabricui-") for path in UNITS.glob("fabricui-*.service"))
PROCESSES = processes.commands(
    addresses=processes.Addresses("127.0.0.1", 8000, 8001, 8002),
    broker=brokers.Broker(url="", command=None, name="configured"),
    register_workers=2,
)
# What a machine of its own adds: where it listens, and which proxy it believes.
OF_THE_SITE = {"--host", "--workers"}


def text(name):
    return (UNITS / f"fabricui-{name}.service").read_text(encoding="utf-8")


def options(argv):
    """Each option with its value, but for the site's own."""
    words, found = argv[1:], []
    while words:
        word = words.pop(0)
        value = words.pop(0) if word.startswith("-") and words and not words[0].startswith("-") else ""
        if word not in OF_THE_SITE:
            found.append((word, value))
    return sorted(found)


def test_there_is_a_unit_for_every_process_and_the_target_wants_them_all():
    assert sorted(SERVICES) == sorted([*PROCESSES, "prepare"])
    target = (UNITS / "fabricui.target").read_text(encoding="utf-8")
    assert sorted(re.findall(r"fabricui-(\w+)\.service", target)) == sorted(PROCESSES)


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_a_unit_starts_what_run_up_starts(name):
    argv, environment = PROCESSES[name]
    started = shlex.split(re.search(r"^ExecStart=(.*)$", text(name), re.MULTILINE)[1])
    extra = {("--proxy-headers", ""), ("--forwarded-allow-ips", "127.0.0.1")} if name == "web" else set()
    assert sorted(set(options(started)) - extra) == options(argv)
    for key, value in environment.items():
        assert f"Environment={key}={value}\n" in text(name)


def test_what_run_up_refuses_does_not_start_under_systemd_either():
    """Every process waits for the unit that prepares, and that one asks first."""
    first, *_ = re.findall(r"^ExecStart=(.*)$", text("prepare"), re.MULTILINE)
    assert shlex.split(first)[1:] == ["-m", "fabricui", "check"]
    for name in PROCESSES:
        assert re.search(r"^Requires=.*\bfabricui-prepare\.service\b", text(name), re.MULTILINE), name
        assert re.search(r"^After=.*\bfabricui-prepare\.service\b", text(name), re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_a_unit_sees_no_key_but_its_own(name):
    for key, readers in processes._MAY_SEE.items():
        assert (f"Environment={key}=" in text(name)) == (name in readers), key
        assert key not in (UNITS / "fabricui.env").read_text(encoding="utf-8")


def test_every_variable_of_the_example_is_a_setting():
    documented = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    names = re.findall(r"^([A-Z_]+)=", (UNITS / "fabricui.env").read_text(encoding="utf-8"), re.MULTILINE)
    of_the_units = {"FABRICUI_REGISTER_ADDRESS"}
    assert names
    assert not [name for name in names if f"`{name.removesuffix('_FILE')}`" not in documented
                and f"`{name}`" not in documented and name not in of_the_units]  # fmt: skip


def test_systemd_finds_nothing_wrong(tmp_path):
    """The programs that the units start are not there, and that alone may be told."""
    program = shutil.which("systemd-analyze")
    assert program is not None, "./run test installs Debian's package systemd for it"
    units = []
    for path in [*UNITS.glob("*.service"), UNITS / "fabricui.target"]:
        copy = tmp_path / path.name
        copy.write_text(path.read_text(encoding="utf-8").replace("/opt/fabricui/.venv/bin/python", "/usr/bin/env"))
        units.append(str(copy))
    done = subprocess.run([program, "verify", "--man=no", *units], check=False, capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if "fabricui" in line and "not found" not in line]
    assert told == []

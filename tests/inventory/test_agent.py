"""The agent reads any tree, and one odd file costs one field."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inventory import agent
from tests.inventory.trees import DATA, case, materialise

AGENT = Path(agent.__file__)
CASES = ["B01", "B02", "B07", "B10", "B30", "B32", "B35"]


def old_python() -> str | None:
    """A Python 3.6, where the machine has one."""
    places = [*sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python")), Path(shutil.which("python3.6") or "/none")]
    # pyenv's own python3.6 on the path is a script that may name no version
    return next((str(path) for path in places if path.exists() and "shims" not in path.parts), None)


def dry_run(top: Path, *options: str, python: str = sys.executable) -> dict:
    command = [python, str(AGENT), "--dry-run", "--sysfs-root", str(top), "--boot-id", "boot-1", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout)


def read(top: Path) -> dict:
    return agent.read_report(str(top), {"hostname": "srv-001", "boot_id": "boot-1", "machine_id": None})


@pytest.fixture
def tree(tmp_path):
    """A tree with one healthy port."""
    return materialise(case("B01"), tmp_path / "infiniband")


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_the_json_written_down_for_it(name, tmp_path):
    expected = json.loads((DATA / f"{name}.expected.json").read_text())
    top = materialise(case(name), tmp_path / "infiniband")
    found = dry_run(top, "--hostname", name.lower())
    if expected["note"]:
        expected["note"] = expected["note"].replace("TOP", str(top))
    assert found.pop("agent_version") == agent.AGENT_VERSION
    assert {key: found[key] for key in expected if key != "machine_id"} == {
        key: value for key, value in expected.items() if key != "machine_id"
    }


@pytest.mark.parametrize("name", CASES)
def test_the_server_understands_every_case(name, tmp_path):
    from inventory.report import parse_report

    assert parse_report(read(materialise(case(name), tmp_path / "infiniband"))).hostname == "srv-001"


def test_a_whole_sys_is_taken_as_well(tmp_path):
    materialise(case("B01"), tmp_path / "class" / "infiniband")
    dmi = tmp_path / "class" / "dmi" / "id"
    dmi.mkdir(parents=True)
    (dmi / "product_serial").write_text("S-14A\n")
    found = read(tmp_path)
    assert found["serial"] == "S-14A"
    assert [port["port_guid"] for port in found["ports"]] == ["0x0210fa0300b10000"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("node_guid", "node_guid"),
        ("sys_image_guid", "system_image_guid"),
        ("fw_ver", "firmware"),
        ("ports/1/state", "state"),
        ("ports/1/phys_state", "phys_state"),
        ("ports/1/rate", "rate_gbps"),
        ("ports/1/lid", "lid"),
        ("ports/1/sm_lid", "sm_lid"),
        ("ports/1/link_layer", "link_layer"),
        ("ports/1/gids/0", "port_guid"),
        ("ports/1/pkeys/0", "pkeys"),
    ],
)
def test_an_unreadable_file_costs_its_own_field_only(path, field, tree):
    before = read(tree)["ports"][0]
    (tree / "mlx5_0" / path).unlink()
    (tree / "mlx5_0" / path).mkdir()
    found = read(tree)
    assert found["skipped"] == [{"path": f"mlx5_0/{path}", "reason": "EISDIR: Is a directory"}]
    after = found["ports"][0]
    follows = {
        "rate_gbps": {"rate_text"},
        "link_layer": {"partition_candidate", "why_not"},
        "port_guid": {"subnet_prefix", "partition_candidate", "why_not"},
    }.get(field, set())
    assert {name for name in before if before[name] != after[name]} == {field} | follows
    assert after[field] in (None, {})


@pytest.mark.parametrize(
    ("path", "content", "field", "value"),
    [
        ("ports/1/rate", "fast\n", "rate_gbps", None),
        ("ports/1/rate", "2.5 Gb/sec (1X SDR)\n", "rate_gbps", 2.5),
        ("ports/1/state", "4:\n", "state", None),
        ("ports/1/lid", "0x\n", "lid", None),
        ("ports/1/lid", "-1\n", "lid", None),
        ("ports/1/lid", "0xbfff\n", "lid", 0xBFFF),
        ("ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n", "port_guid", None),
        ("ports/1/gids/0", "fe80::1\n", "port_guid", None),
        ("ports/1/pkeys/0", "0x0000\n", "pkeys", {}),
        ("ports/1/pkeys/0", "zz\n", "pkeys", {}),
        ("node_guid", "\xff\x00" * 3000, "node_guid", None),
        ("fw_ver", "20.40\x07\n", "firmware", "20.40?"),
    ],
)
def test_an_odd_file_costs_its_own_field_only(path, content, field, value, tree):
    (tree / "mlx5_0" / path).write_text(content)
    found = read(tree)["ports"][0]
    assert found[field] == value
    assert found["phys_state"] == "LinkUp"


def test_empty_slots_of_the_table_are_left_out_and_indexes_kept(tree):
    for index, entry in enumerate(["0xffff", "0x0000", "0x8010", "0x0010", "0x8000"]):
        (tree / "mlx5_0/ports/1/pkeys" / str(index)).write_text(entry + "\n")
    assert read(tree)["ports"][0]["pkeys"] == {"0": "0xffff", "2": "0x8010", "3": "0x0010"}


def test_a_pipe_in_place_of_a_file_does_not_hold_the_boot(tree):
    (tree / "mlx5_0/ports/1/rate").unlink()
    os.mkfifo(tree / "mlx5_0/ports/1/rate")
    assert dry_run(tree, "--hostname", "srv-001")["ports"][0]["rate_gbps"] is None


def test_names_nobody_expects_are_left_alone(tree):
    (tree / "mlx5_0/ports/²").mkdir()
    (tree / "mlx5_0/ports/0").mkdir()
    (tree / "mlx5_0/ports/1/pkeys/²").write_text("0x8010\n")
    (tree / "README").write_text("not a device")
    (tree / os.fsdecode(b"mlx5_\xff")).mkdir()
    found = read(tree)
    assert [(port["device"], port["port"]) for port in found["ports"]] == [("mlx5_0", 1)]
    assert [entry["path"] for entry in found["skipped"]] == [
        "mlx5_?/node_guid",
        "mlx5_?/sys_image_guid",
        "mlx5_?/ports",
    ]


def test_another_kind_of_node_is_no_candidate(tree):
    (tree / "mlx5_0/node_type").write_text("2: switch\n")
    found = read(tree)["ports"][0]
    assert not found["partition_candidate"]
    assert found["why_not"] == "not a channel adapter but 2: switch"


def test_an_empty_class_directory_is_said_to_be_empty(tmp_path):
    (tmp_path / "infiniband").mkdir()
    found = read(tmp_path / "infiniband")
    assert found["ports"] == []
    assert found["note"].startswith("no devices: ")


def test_the_machine_id_itself_stays_on_the_machine(tree):
    found = dry_run(tree, "--hostname", "srv-001", "--machine-id", "0123456789abcdef0123456789abcdef")
    assert len(found["machine_id"]) == 32
    assert found["machine_id"] != "0123456789abcdef0123456789abcdef"


def test_the_environment_can_name_a_simulated_server(tree, monkeypatch):
    monkeypatch.setenv("FABRICUI_AGENT_HOSTNAME", "srv-042")
    assert dry_run(tree)["hostname"] == "srv-042"


def vermin(program: Path) -> subprocess.CompletedProcess:
    """Which Python a program needs, in vermin's words; status 0 when 3.6 is enough."""
    command = [
        Path(sys.executable).parent / "vermin",
        "--no-tips",
        "--eval-annotations",
        "--violations",
        "-t=3.6-",
        program,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_it_is_python_3_6():
    """Syntax and library calls alike, as vermin knows them."""
    ast.parse(AGENT.read_text(encoding="utf-8"), feature_version=(3, 6))
    done = vermin(AGENT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_vermin_would_say_so(tmp_path):
    newer = tmp_path / "newer.py"
    newer.write_text("import subprocess, time\nsubprocess.run([], capture_output=True)\ntime.monotonic_ns()\n")
    done = vermin(newer)
    assert done.returncode == 1
    assert "'time.monotonic_ns' member requires !2, 3.7" in done.stdout
    assert "'subprocess.run(capture_output)' requires !2, 3.7" in done.stdout


def test_it_reports_the_counters_that_are_there(tree):
    for folder, name, content in [
        ("counters", "symbol_error", "0\n"),
        ("counters", "port_xmit_data", "18446744073709551615\n"),
        ("counters", "port_rcv_data", "N/A (no PMA)\n"),
        ("hw_counters", "out_of_buffer", "7\n"),
        ("hw_counters", "lifespan", "10\n"),
    ]:
        (tree / "mlx5_0/ports/1" / folder).mkdir(exist_ok=True)
        (tree / "mlx5_0/ports/1" / folder / name).write_text(content)
    (tree / "mlx5_0/ports/1/counters/link_downed").mkdir()
    found = read(tree)
    assert found["ports"][0]["counters"] == {"symbol_error": 0, "port_xmit_data": 2**64 - 1, "out_of_buffer": 7}
    assert {entry["path"].rpartition("/")[2] for entry in found["skipped"]} == {"port_rcv_data", "link_downed"}


def test_as_nobody_an_unreadable_file_costs_its_own_field_only(tree):
    """The same with permissions instead of a directory: root reads anything, so this is run as nobody."""
    (tree / "mlx5_0/ports/1/rate").chmod(0)
    if os.getuid() == 0:
        python = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-"]
        for folder in (tree, *tree.parents):
            if folder.stat().st_uid == 0 and folder != Path("/") and str(folder).startswith("/tmp/"):
                folder.chmod(folder.stat().st_mode | 0o755)
    else:
        python = ["/usr/bin/python3", "-"]
    command = [*python, "--dry-run", "--sysfs-root", str(tree), "--hostname", "srv-001"]
    with AGENT.open("rb") as program:
        done = subprocess.run(command, stdin=program, capture_output=True, text=True, timeout=30, cwd="/")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["skipped"] == [{"path": "mlx5_0/ports/1/rate", "reason": "EACCES: Permission denied"}]
    assert (found["ports"][0]["rate_gbps"], found["ports"][0]["lid"]) == (None, 21)


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    for name in ("fabricui-agent.service", "fabricui-agent.timer"):
        text = (AGENT.parent / name).read_text(encoding="utf-8")
        assert "Before=" not in text  # nothing waits for it
        (tmp_path / name).write_text(text)
    timer = (AGENT.parent / "fabricui-agent.timer").read_text(encoding="utf-8")
    assert "OnBootSec=" in timer
    assert "OnUnitActiveSec=1h" in timer
    if shutil.which("systemd-analyze"):
        command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "fabricui-agent.timer")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "fabricui-agent" not in done.stderr.replace("agent.py is not executable", ""), done.stderr


def test_it_runs_on_the_oldest_python_here(tree):
    python = old_python() or "/usr/bin/python3"
    assert dry_run(tree, "--hostname", "srv-001", python=python)["ports"] == read(tree)["ports"]


def test_it_imports_the_standard_library_only():
    names = {
        (node.names[0].name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in ast.walk(ast.parse(AGENT.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert names <= sys.stdlib_module_names

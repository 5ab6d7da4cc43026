"""The on-host program without a device: what it reads from sysfs, its memory, and a whole TCP run in two processes."""

import ast
import contextlib
import hashlib
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from probes import on_host
from probes.session import run_pair
from probes.terms import Kind, Mode, Order, Outcome, PortChoice, Profile, Verb
from tests.probes.ends import PROGRAM_DIGEST, ROOT, LocalEnd, Scripted


def code(act, *arguments):
    with pytest.raises(on_host.Refusal) as refused:
        act(*arguments)
    return refused.value.code


def test_it_is_python_3_6_and_the_standard_library_alone():
    text = (ROOT / "probes/on_host.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= sys.stdlib_module_names
    assert {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} == {"typing"}


def test_the_first_active_port_is_chosen(sysfs):
    facts = on_host.choose_port({})
    assert (facts["device"], facts["port"], facts["lid"]) == ("mlx5_0", 1, 0x1A)
    assert (facts["node_guid"], facts["port_guid"]) == ("0x0002c903000a0001", "0x0002c903000a0002")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"device": "mlx5_1"}, "NO_DEVICE"),
        ({"device": "mlx5_0", "port": 2}, "NO_DEVICE"),
        ({"node_guid": "0x0002c903000a0009"}, "WRONG_DEVICE"),
        ({"port_guid": "0x0002c903000a0009"}, "WRONG_DEVICE"),
        ({"interface": "eth7"}, "NO_ADDRESS"),
    ],
)
def test_an_order_that_does_not_fit(sysfs, wanted, expected):
    assert code(on_host.choose_port, wanted) == expected


def test_registered_guids_in_any_spelling_fit(sysfs):
    assert on_host.choose_port({"node_guid": "0x2c903000a0001", "port_guid": "0x0002C903000A0002"})


def test_no_device(tmp_path, monkeypatch):
    monkeypatch.setattr(on_host, "SYSFS", str(tmp_path / "none"))
    assert code(on_host.choose_port, {}) == "NO_DEVICE"


def test_a_port_that_is_down(sysfs):
    sysfs(mlx5_0__ports__1__state="2: INIT")
    assert code(on_host.choose_port, {}) == "PORT_DOWN"


@pytest.mark.parametrize("kind", ["4: RNIC", "8: unspecified"])
def test_iwarp_and_efa_have_no_connections_of_this_kind(sysfs, kind):
    sysfs(mlx5_0__node_type=kind)
    assert code(on_host.choose_port, {}) == "UNSUPPORTED"


@pytest.mark.parametrize("name", ["stub0", "mlx5_fake", "simulated_0"])
def test_names_of_stand_ins_are_refused(sysfs, name):
    sysfs(**{f"{name}__ports__1__state": "4: ACTIVE"})
    assert code(on_host.choose_port, {"device": "mlx5_0"}) == "STUB_DEVICE"


def test_a_pkey_is_found_by_value_and_full_is_preferred(sysfs):
    assert on_host.pkey_entry("mlx5_0", 1, 0x10) == (10, 0x8010)
    assert on_host.pkey_entry("mlx5_0", 1, 0x7FFF) == (0, 0x7FFF)
    assert code(on_host.pkey_entry, "mlx5_0", 1, 0x11) == "NO_COMMON_PKEY"
    assert code(on_host.pkey_entry, "mlx5_0", 1, 0) == "NO_COMMON_PKEY"


def test_usable_gids_are_roce_v2_and_not_empty(sysfs):
    zero = "0000:0000:0000:0000:0000:0000:0000:0000"
    mapped = "0000:0000:0000:0000:0000:ffff:c0a8:4d01"
    for index, (address, kind) in enumerate([(zero, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2")]):
        sysfs(**{
            f"rocep__ports__1__gids__{index}": address, f"rocep__ports__1__gid_attrs__types__{index}": kind,
            f"rocep__ports__1__gid_attrs__ndevs__{index}": "eth1",
        })  # fmt: skip
    assert on_host.gids("rocep", "1") == [[2, mapped, "ipv4", "eth1"]]


def test_a_guid_from_verbs_is_read_in_network_order():
    number = int.from_bytes(bytes.fromhex("0002c903000a0001"), sys.byteorder)
    assert on_host.canonical(number) == "0x0002c903000a0001"


def work(**changes):
    return {
        "work": {"piece_bytes": 4096, "pieces": 16, "total_bytes": 100_000, "queue_pairs": 2, "verb": "WRITE",
                 "mode": "scatter", "seed": 7, "order": 9, **changes}
    }  # fmt: skip


def test_whole_passes_over_the_buffer_are_moved():
    assert on_host.checked_work(work())["passes"] == 2
    assert on_host.checked_work(work(total_bytes=1))["passes"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"piece_bytes": 0}, {"piece_bytes": 1 << 31}, {"pieces": -1}, {"pieces": 1 << 20}, {"total_bytes": "all"},
        {"queue_pairs": 9}, {"verb": "SEND"}, {"mode": "fast"}, {"piece_bytes": 1 << 30, "pieces": 1000}, {"seed": "x"},
    ],
)  # fmt: skip
def test_unreasonable_work_is_refused(changes):
    assert code(on_host.checked_work, work(**changes)) == "PROTOCOL"


def test_a_busy_end_takes_in_no_more_than_a_request_may_be_long(monkeypatch):
    wire = on_host.Wire.__new__(on_host.Wire)
    wire._held = b""
    monkeypatch.setattr(on_host.select, "select", lambda *_: ([0], [], []))
    monkeypatch.setattr(on_host.os, "read", lambda _, count: b"x" * count)

    def flooded():
        for _ in range(2 * on_host.LINE_BYTES // 65536):
            wire._fill(0)

    assert code(flooded) == "PROTOCOL"
    assert len(wire._held) <= on_host.LINE_BYTES + 65536


def test_the_digest_of_the_sink_is_the_one_the_source_expects():
    layout = on_host.Layout(on_host.checked_work(work()))
    source, sink = on_host.Buffer(16 * 4096), on_host.Buffer(16 * 4096)
    source.fill(on_host.pattern(7))
    sink.fill(bytes([on_host.POISON]) * 100)
    for piece in layout.posting:
        slot = layout.slot_of[piece]
        sink.memory[slot * 4096 : (slot + 1) * 4096] = source.memory[piece * 4096 : (piece + 1) * 4096]
    expected = source.digest(b"nonce", 4096, layout.sources_by_slot())
    assert sink.digest(b"nonce", 4096, None) == expected
    assert sink.digest(b"other", 4096, None) != expected
    sink.memory[5000] ^= 1
    assert sink.digest(b"nonce", 4096, None) != expected


def test_no_two_pieces_hold_the_same_bytes():
    buffer = on_host.Buffer(256 * 4096)
    buffer.fill(on_host.pattern(3))
    assert len({bytes(buffer.memory[i * 4096 : (i + 1) * 4096]) for i in range(256)}) == 256


def test_scattered_orders_are_permutations_and_depend_on_the_seed():
    orders = [on_host.shuffled(100, seed, "slots") for seed in (1, 1, 2)]
    assert sorted(orders[0]) == list(range(100))
    assert orders[0] == orders[1] != orders[2]
    # The same on every version of Python, for both ends draw it.
    assert on_host.shuffled(8, 1, "slots") == [7, 4, 3, 5, 0, 6, 1, 2]


def test_percentiles_are_nearest_rank_and_the_histogram_counts_all():
    found = on_host.statistics_of(list(range(1, 1001)))
    assert (found["p50_ns"], found["p99_ns"], found["p999_ns"], found["max_ns"]) == (500, 990, 999, 1000)
    assert sum(count for _, count in found["histogram"]) == 1000


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0, 0), (7, 7), (8, 8), (15, 15), (16, 16), (17, 16), (18, 17), (31, 23), (32, 24), (1000, 63)],
)
def test_buckets_are_eight_a_power_of_two(value, bucket):
    assert on_host.bucket_of(value) == bucket


# The program itself, in processes of this machine


@pytest.fixture
def installed(tmp_path):
    """The program and its wrapper, installed by the documented command."""
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqn3wf8WNpHxhHKnm98 probe\n")
    command = [ROOT / "remote/host/install-probe", "--to", tmp_path / "to", "--authorized-key", key]
    subprocess.run([*command, "--program", ROOT / "probes/on_host.py"], check=True, capture_output=True)
    return tmp_path / "to"


TCP = Profile("tcp", Verb.WRITE, 1 << 16, 16, Mode.CONTIGUOUS, 1 << 22, queue_pairs=2)
LOOPBACK = PortChoice(interface="lo")


def tcp_run(installed, **changes):
    ends = LocalEnd("one", installed), LocalEnd("two", installed)
    order = Order(TCP, 5, kind=Kind.TCP, **{"sender": LOOPBACK, "target": LOOPBACK, **changes})
    result = run_pair(sender=ends[0], target=ends[1], order=order, deadline_s=60)
    assert all(process.poll() is not None for end in ends for process in end.processes)
    return result


def test_a_tcp_baseline_moves_bytes_and_says_over_what(installed):
    result = tcp_run(installed)
    assert (result.outcome, result.reason) == (Outcome.TCP_OK, "")
    assert result.figures["bytes"] == 1 << 22
    assert result.evidence["sender"]["interface"] == "lo"
    assert "pct_line" not in result.figures


def all_of(stream):
    """What comes until the end, or until the other side has gone."""
    found = b""
    with stream, contextlib.suppress(ConnectionResetError):
        while part := stream.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    ("banner", "outcome"), [(b"SSH-2.0-OpenSSH_9.6\r\n", Outcome.PROTOCOL), (b"", Outcome.TIMED_OUT)]
)
def test_a_peer_cannot_send_the_bytes_to_a_third_machine(installed, banner, outcome):
    got = []

    def third_machine(listener):
        streams = [listener.accept()[0] for _ in range(TCP.queue_pairs)]
        for stream in streams:
            stream.sendall(banner)
        got.extend(all_of(stream) for stream in streams)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=third_machine, args=(listener,))
        thread.start()
        liar = Scripted("two", {
            "hello": {"did": "hello", "protocol": 1}, "connect": {"did": "connect"}, "go": None,
            "setup": {"did": "setup", "address": "127.0.0.1", "tcp_port": listener.getsockname()[1]},
        })  # fmt: skip
        order = Order(TCP, 5, kind=Kind.TCP, sender=LOOPBACK, target=LOOPBACK, transfer_timeout_s=1.0)
        result = run_pair(sender=LocalEnd("one", installed), target=liar, order=order, deadline_s=60)
        thread.join(10)
    assert result.outcome is outcome
    assert [len(data) for data in got] == [16, 16]  # the token, and nothing of the buffer


def test_a_tcp_baseline_needs_an_interface_with_an_address(installed):
    assert tcp_run(installed, target=PortChoice(interface="none7")).outcome is Outcome.NO_DEVICE
    assert tcp_run(installed, target=PortChoice()).outcome is Outcome.PROTOCOL


def test_without_a_device_an_rdma_run_says_so_and_never_falls_back(installed):
    # On a developer's machine with a device: order one that it lacks.
    choice = PortChoice(device="none7" if Path("/sys/class/infiniband").exists() else "")
    ends = LocalEnd("one", installed), LocalEnd("two", installed)
    profile = Profile("link", Verb.WRITE, 4096, 4, Mode.CONTIGUOUS, 1 << 16)
    result = run_pair(
        sender=ends[0], target=ends[1], order=Order(profile, 1, sender=choice, target=choice), deadline_s=60
    )
    assert result.outcome is Outcome.NO_DEVICE
    assert not result.figures


def started(installed, seconds=30):
    end = LocalEnd("one", installed)
    return end.open(seconds=seconds, timeout_s=10)


def test_the_end_of_stdin_ends_it(installed):
    stream = started(installed)
    stream.send({"do": "hello"})
    assert stream.poll(20)["did"] == "hello"
    stream.process.stdin.close()
    assert stream.process.wait(10) == 0


def test_its_time_ends_it_whatever_the_controller_does(installed):
    begun = time.monotonic()
    stream = started(installed, seconds=1)
    assert stream.process.wait(20) != 0
    assert time.monotonic() - begun < 15
    stream.close()


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"[]\n", b'{"do": 5}\n', b'{"do": "go"}\n', b"x" * (2 << 20)],
    ids=["no-json", "no-object", "no-verb", "too-early", "endless"],
)
def test_what_is_no_request_is_refused(installed, line):
    stream = started(installed)
    try:
        stream.process.stdin.write(line)
        stream.process.stdin.flush()
    except BrokenPipeError:
        pass
    answer = stream.poll(20)
    assert answer["failed"] == "PROTOCOL"
    stream.close()


def test_the_wrapper_starts_no_other_program(installed):
    (installed / "on_host.py").write_text("print('something else')\n")
    stream = started(installed)
    assert stream.process.wait(10) == 65
    stream.close()


@pytest.mark.parametrize(
    "command",
    ["", "run", "run x 5", f"run {PROGRAM_DIGEST} 0", f"run {PROGRAM_DIGEST} 601", "sh -c id", "identify; id"],
)
def test_the_wrapper_takes_two_verbs_and_nothing_else(installed, command):
    done = subprocess.run(
        [installed / "fabricui-probe", installed],
        env={"SSH_ORIGINAL_COMMAND": command},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert re.match(r"fabricui-probe: .+", done.stderr)


def test_identify_names_both_digests(installed):
    done = subprocess.run(
        [installed / "fabricui-probe", installed],
        env={"SSH_ORIGINAL_COMMAND": "identify"},
        capture_output=True,
        text=True,
        check=True,
    )
    values = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert values["program_digest"] == PROGRAM_DIGEST
    wrapper = (ROOT / "remote/host/fabricui-probe").read_bytes()
    assert values["wrapper_digest"] == hashlib.sha256(wrapper).hexdigest()

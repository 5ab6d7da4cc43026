"""`./run manage partitions_conf`, as a person calls it: from a path and from standard input, in JSON and in words.

No test here may touch a database: the command must work before one is made.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "partitions_conf"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
NET, SM = str(FOLDER / "oracle.net"), "0x0210fa0300a10001"


def path_of(name: str) -> str:
    return str(FOLDER / EXPECTED[name]["file"])


def port_of(node: str) -> str:
    return f"0x0210fa0300a{node[5]}0001" if node.startswith("node") else f"0x0210fa0300e{node[4]}0000"


def answer(capsys, *arguments: str) -> tuple[dict, int]:
    """The JSON on standard output, and the exit status."""
    status = 0
    try:
        call_command("partitions_conf", *arguments, "--json")
    except SystemExit as end:
        status = end.code
    return json.loads(capsys.readouterr().out), status


def outside(*arguments: str, data: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own, with no database to be had."""
    return subprocess.run(
        [sys.executable, "manage.py", "partitions_conf", *arguments],
        cwd=ROOT, input=data, capture_output=True, check=False,
        env={**os.environ, "DATABASE_URL": "sqlite:////nowhere/at/all.sqlite3", **environment},
    )  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_check(capsys, name):
    found, status = answer(capsys, "check", path_of(name))
    assert found.keys() == {"verdict", "findings", "partitions"}
    assert found["verdict"] == EXPECTED[name]["import_verdict"].lower()
    assert status == (found["verdict"] == "refuse")
    for one in found["findings"]:
        assert one.keys() == {"line", "column", "rule", "severity", "message", "fix"}


@pytest.mark.parametrize("name", EXPECTED)
def test_explain(capsys, name):
    case = EXPECTED[name]
    found, status = answer(capsys, "explain", path_of(name), "--topology", NET, "--sm", SM)
    assert (found, status) == (
        {
            "rejected": case["opensm_rejects_file"],
            "error": case["opensm_error"],
            "ports": {port_of(node): entries for node, entries in case["pkey_tables"].items()},
        },
        0,
    )


def test_the_partitions_of_a_file(capsys):
    found, _ = answer(capsys, "check", path_of("A23"))
    default, shared = found["partitions"]
    assert (default["pkey"], default["name"], default["members"]) == (
        "0x7fff", "Default", [{"member": "ALL", "membership": "full"}],
    )  # fmt: skip
    assert (shared["pkey"], shared["name"], shared["auto_numbered"], shared["lines"]) == (
        "0x0080", "ShareIO", False, [2, 4, 5],
    )  # fmt: skip
    assert [(one["member"][-6:], one["membership"]) for one in shared["members"]] == [
        ("a10001", "full"), ("a20001", "full"), ("a30001", "limited"), ("a40001", "full"), ("a50001", "full"),
        ("a60001", "limited"),
    ]  # fmt: skip
    assert shared["flags"]["defmember"] is None


def test_only_the_last_mention_of_a_member_is_listed(capsys, tmp_path):
    file = tmp_path / "conf"
    file.write_bytes(b"A=0x10,ipoib,mtu=5,scope=2:0x2=full,ALL,0x3=full,SELF;\nA=0x10,sl=3:0x3,NONE,ALL_CAS=both\n")
    found, _ = answer(capsys, "check", str(file))
    (partition,) = found["partitions"]
    assert [(one["member"], one["membership"]) for one in partition["members"]] == [
        ("ALL", "limited"), ("SELF", "limited"), ("0x0000000000000003", "limited"), ("ALL_CAS", "both"),
    ]  # fmt: skip
    flags = partition["flags"]
    assert (flags["ipoib"], flags["mtu"], flags["scope"], flags["sl"], flags["rate"]) == (True, 5, [2], 3, None)


def test_diff_shows_the_ports_that_differ(capsys):
    found, status = answer(capsys, "diff", path_of("A57"), path_of("A46"), "--topology", NET, "--sm", SM)
    assert status == 0
    assert found["old"] == found["new"] == {"rejected": False, "error": None}
    assert found["ports"] == {
        "0x0210fa0300a20001": {"old": ["0xffff@0", "0x0010@1"], "new": ["0xffff@0"], "gains": [], "loses": ["0x0010"]},
        "0x0210fa0300a30001": {"old": ["0xffff@0", "0x0010@1"], "new": ["0xffff@0"], "gains": [], "loses": ["0x0010"]},
        "0x0210fa0300a40001": {"old": ["0x7fff@0"], "new": ["0xffff@0"], "gains": ["0xffff"], "loses": ["0x7fff"]},
    }


def test_diff_with_itself_is_empty_and_a_rejection_is_said(capsys):
    found, _ = answer(capsys, "diff", path_of("A28"), path_of("A28"), "--topology", NET, "--sm", SM)
    assert found["ports"] == {}
    assert found["new"] == {"rejected": True, "error": "PARSE ERROR: line 1: no partition definition found"}


def beside(patched: str, old: str, new: str) -> subprocess.CompletedProcess[str]:
    """`diff --json` in a process of its own, for it forks: with every file large, and with `patched` done before."""
    asked = ["partitions_conf", "diff", path_of(old), path_of(new), "--topology", NET, "--sm", SM, "--json"]
    code = f"""
import os, signal, sys, django
django.setup()
from django.core.management import CommandError, call_command
from partitions.management.commands import partitions_conf
partitions_conf._LARGE = 1
here, read = os.getpid(), partitions_conf._read
{patched}
try:
    call_command(*{asked!r})
except CommandError as error:
    raise SystemExit(f"{{error.returncode}} {{error}}")
"""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "fabricui.settings"},
    )  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [("A57", "A46"), ("A28", "A46"), ("A46", "A28")])
def test_two_large_files_are_read_beside_one_another_and_say_the_same(capsys, old, new):
    asked = ("diff", path_of(old), path_of(new), "--topology", NET, "--sm", SM)
    done = beside("", old, new)
    assert (json.loads(done.stdout), done.returncode) == answer(capsys, *asked)
    # And truly by two processes.
    told = beside(
        "partitions_conf._read = lambda *asked: (print(os.getpid(), file=sys.stderr), read(*asked))[1]", old, new
    )
    assert told.stdout == done.stdout
    assert len(set(re.findall(r"^\d+$", told.stderr, re.MULTILINE))) == 2


def test_a_reader_that_is_killed_is_said():
    killed = "os.getpid() != here and os.kill(os.getpid(), signal.SIGKILL)"
    done = beside(f"partitions_conf._read = lambda *asked: {killed} or read(*asked)", "A57", "A46")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("2 The process that read the old file was killed")


def test_allow_both_pkeys(capsys, tmp_path):
    file = tmp_path / "conf"
    file.write_bytes(b"Default=0x7fff:ALL=full;A=0x10:0x0210fa0300a20001=both;")
    asked = ("explain", str(file), "--topology", NET, "--sm", SM)
    assert answer(capsys, *asked)[0]["ports"]["0x0210fa0300a20001"] == ["0xffff@0", "0x8010@1"]
    both = answer(capsys, *asked, "--allow-both-pkeys")[0]
    assert both["ports"]["0x0210fa0300a20001"] == ["0xffff@0", "0x0010@1", "0x8010@2"]


def test_port_guids_as_they_are_listed(capsys, tmp_path):
    net = tmp_path / "net"
    net.write_text(re.sub(r"\(210fa0300a(\d)0001\)", r"(210fa0300a\g<1>0007)", Path(NET).read_text(encoding="utf-8")))
    asked = ("explain", path_of("A44"), "--topology", str(net))
    listed, _ = answer(capsys, *asked, "--sm", "0x0210fa0300a10007", "--port-guids", "listed")
    assert "0x0210fa0300a20007" in listed["ports"]
    counted, _ = answer(capsys, *asked, "--sm", SM)
    assert "0x0210fa0300a20001" in counted["ports"]


def test_in_words(capsys):
    with pytest.raises(SystemExit):
        call_command("partitions_conf", "check", path_of("A16"))
    said = capsys.readouterr().out
    assert "1:32: refuse: " in said
    assert "[missing-semicolon]" in said
    call_command("partitions_conf", "explain", path_of("A28"), "--topology", NET, "--sm", SM)
    said = capsys.readouterr().out
    assert "The file is rejected (PARSE ERROR: line 1: no partition definition found)" in said
    assert "0x0210fa0300e10000  0xffff@0  leaf1\n" in said
    call_command("partitions_conf", "diff", path_of("A44"), path_of("A57"), "--topology", NET, "--sm", SM)
    assert "6 of 8 end ports differ." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("check", "/no/such/file"), "cannot be read: No such file"),
        (("check", str(ROOT)), "cannot be read: Is a directory"),
        (("check", "a\0b"), "cannot be read: "),
        (("check", "/dev/zero"), "holds more than 256 MiB"),
        (("explain", path_of("A01"), "--topology", NET, "--sm", "0xzz"), "is not a GUID"),
        (("explain", path_of("A01"), "--topology", NET, "--sm", "0x0"), "is no port's GUID"),
        (("explain", path_of("A01"), "--topology", NET, "--sm", "0x99"), "no connected end port 0x0000000000000099"),
        (("explain", path_of("A01"), "--topology", path_of("A01"), "--sm", SM), "names no node"),
        (("explain", path_of("A01"), "--topology", "/no/net", "--sm", SM), "cannot be read"),
        (("explain", path_of("A01"), "--topology", "-", "--sm", SM), "cannot be standard input"),
        (("diff", "-", "-", "--topology", NET, "--sm", SM), "Only one of the two files"),
    ],
)
def test_a_question_that_cannot_be_answered(arguments, sentence):
    with pytest.raises(CommandError, match=re.escape(sentence)) as raised:
        call_command("partitions_conf", *arguments)
    assert raised.value.returncode == 2


def test_standard_input_without_a_database_and_one_sentence_for_a_mistake():
    done = outside("check", "-", "--json", data=Path(path_of("A22")).read_bytes())
    assert (done.returncode, json.loads(done.stdout)["verdict"], done.stderr) == (0, "warn", b"")
    done = outside("check", "-", data=bytes(range(256)) * 20)
    assert done.returncode == 1
    assert b"Traceback" not in done.stdout + done.stderr
    done = outside("explain", "/no/such/file", "--topology", NET, "--sm", SM)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
    done = outside("explain", path_of("A01"))
    assert done.returncode == 2


def test_a_path_that_was_meant_from_the_folder_before():
    done = outside("check", "partitions_conf/" + EXPECTED["A01"]["file"], OLDPWD=str(FOLDER.parent))
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("shell", "sentence"),
    [
        ('"$@" - <&-', "'-' cannot be read: standard input is closed."),
        (f'"$@" {path_of("A01")} >&-', "cannot be written: standard output is closed."),
        (f'"$@" {path_of("A01")} --json >/dev/full', "cannot be written: No space left on device."),
    ],
)
def test_streams_that_are_closed_or_full_are_one_sentence(shell, sentence):
    command = [sys.executable, "manage.py", "partitions_conf", "check"]
    done = subprocess.run(["sh", "-c", shell, "sh", *command], cwd=ROOT, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert sentence in done.stderr

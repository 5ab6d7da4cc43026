"""Servers that report one GUID at the same moment: one gets it, the others a conflict, none an error."""

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.inventory.reports import GUID_A, GUID_B, enrolled, outcomes, port, registers

ROOT = Path(__file__).resolve().parents[2]

REPORTER = """
import json, sys
import django
django.setup()
from inventory.models import Server
from tests.inventory.reports import outcomes, port, registers
server = Server.objects.get(hostname=sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(15):
    guid = f"0x0002c903000{number:04x}1"
    print(json.dumps(outcomes(registers(server, port(guid)))), flush=True)
"""

PREPARE = """
import django
django.setup()
from inventory.operations import create_subnet
from tests.inventory.reports import OLGA, enrolled
subnet = create_subnet(name="lab", actor=OLGA)
for number in range(4):
    enrolled(subnet, f"srv-{number}")
"""

COUNT = """
import json
import django
django.setup()
from audit.chain import verify
from inventory.models import Port, PortConflict
print(json.dumps([Port.objects.count(), PortConflict.objects.count(), verify().is_sound]))
"""


def test_processes_on_one_sqlite_file(tmp_path):
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "fabricui.settings",
        "DATABASE_URL": f"sqlite://{tmp_path / 'race.sqlite3'}",
        "FABRICUI_DATA_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }

    def python(*arguments, **keywords):
        return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True, **keywords)

    python("manage.py", "migrate", "--skip-checks", "-v0", "audit")
    python("manage.py", "migrate", "--skip-checks", "-v0", "inventory")
    python("-c", PREPARE)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", REPORTER, f"srv-{number}"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = []
        for process in processes:
            out, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
            answers.append([json.loads(line)[0] for line in out.splitlines()])
    finally:
        for process in processes:
            process.kill()
            process.wait()
    # each later report leaves the earlier ports of its server out, so a GUID is claimed once by each server
    assert [sorted(column) for column in zip(*answers, strict=True)] == [
        ["conflict", "conflict", "conflict", "new"]
    ] * 15
    assert json.loads(python("-c", COUNT, capture_output=True, text=True).stdout) == [15, 45, True]


@pytest.fixture
def rivals(transactional_db, subnet):
    return [enrolled(subnet, f"srv-{number}")[0] for number in range(4)]


def together(*calls):
    """Run all calls at the same moment in threads of their own, each with a connection of its own."""
    from django.db import connection

    gate, results = threading.Barrier(len(calls)), [None] * len(calls)

    def run(place, call):
        try:
            gate.wait(timeout=30)
            results[place] = call()
        except Exception as error:
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


@pytest.fixture
def late_judge(rivals, monkeypatch):
    """Two servers: when the first reports, the second gets GUID_A between that report's look and its write."""
    from inventory.operations import reports

    first, second = rivals[:2]
    judge, looked = reports.judge, []

    def judge_late(report, known):
        found = judge(report, known)
        if known.server == first and not looked:
            looked.append(True)
            (receipt,) = together(lambda: registers(second, port(GUID_A)))
            assert outcomes(receipt) == ["new"], receipt
        return found

    monkeypatch.setattr(reports, "judge", judge_late)
    return first, second


@pytest.mark.pg
def test_threads_on_postgresql(rivals):
    from audit.chain import verify
    from inventory.models import Port, PortConflict

    for number in range(15):
        guid = f"0x0002c903000{number:04x}1"
        receipts = together(*[partial(registers, server, port(guid)) for server in rivals])
        assert not [receipt for receipt in receipts if isinstance(receipt, Exception)], receipts
        assert sorted(outcomes(receipt)[0] for receipt in receipts) == ["conflict", "conflict", "conflict", "new"]
    assert (Port.objects.count(), PortConflict.objects.count()) == (15, 45)
    assert verify().is_sound


@pytest.mark.pg
def test_a_lost_race_is_run_again_and_ends_as_a_conflict(late_judge):
    first, _ = late_judge
    assert outcomes(registers(first, port(GUID_A), port(GUID_B, device="mlx5_1"))) == ["conflict", "new"]


@pytest.mark.pg
def test_a_port_that_nobody_had_goes_to_one_of_two_that_claim_it_at_once(late_judge):
    """It was only seen, so no new row decides it: the loser must notice that it is somebody's by now."""
    from django.utils import timezone

    from inventory.models import Port

    first, second = late_judge
    Port.objects.create(subnet=first.subnet, guid=GUID_A, seen_at=timezone.now())
    assert outcomes(registers(first, port(GUID_A, node_guid="0x0002c903000f0000"))) == ["conflict"]
    assert Port.objects.select_related("hca__server").get().server == second


@pytest.mark.pg
def test_one_token_use_and_one_name_are_given_once(transactional_db, subnet):
    from datetime import timedelta

    from inventory.models import Server
    from inventory.operations import create_enrolment_token, enrol_server
    from tests.inventory.reports import OLGA

    one = create_enrolment_token(subnet=subnet, name="one", uses=1, lifetime=timedelta(hours=1), actor=OLGA)
    many = create_enrolment_token(subnet=subnet, name="many", uses=9, lifetime=timedelta(hours=1), actor=OLGA)

    def enrol(token, hostname, digit):
        return lambda: enrol_server(token=token, hostname=hostname, credential_digest=digit * 64)

    by_token = together(*[enrol(one, f"srv-{digit}", digit) for digit in "0123"])
    assert sorted(type(result).__name__ for result in by_token) == ["EnrolmentRefused"] * 3 + ["Server"]
    by_name = together(*[enrol(many, "srv-9", digit) for digit in "4567"])
    assert sorted(type(result).__name__ for result in by_name) == ["HostnameTaken"] * 3 + ["Server"]
    again = together(*[enrol(many, "srv-8", "8") for _ in range(4)])
    assert len({getattr(server, "pk", server) for server in again}) == 1
    assert Server.objects.count() == 3


@pytest.mark.pg
def test_groups_of_reports_that_name_the_same_guids_never_wait_for_each_other_for_ever(rivals):
    """Two doors write new HCAs and ports by COPY, in opposite orders of their servers, with one GUID in common each."""
    from audit.chain import verify
    from inventory.models import HCA, Port, PortConflict
    from inventory.operations import reports
    from inventory.report import parse_report
    from tests.inventory.reports import said

    def guid(number, last=1):
        return f"0x0002c903{number:07x}{last}"

    def group(servers, first):
        """Each server brings a port of its own between two that everybody claims."""
        asked = []
        for place, server in enumerate(servers):
            own, shared = guid(first + place), guid(first // 1000 * 1000 + place)
            ports = [port(shared, device="mlx5_0"), port(own, device="mlx5_1")]
            asked.append(reports.Asked(server.pk, parse_report(said(*ports, hostname=server.hostname))))
        return lambda: reports._register_all(asked)

    for turn in range(1, 6):
        one = group(rivals[:2], turn * 1000 + 100)
        other = group(rivals[:1:-1], turn * 1000 + 200)
        told = together(one, other)
        assert not [answer for answer in told if answer is None or isinstance(answer, Exception)], told
        outcomes_of = [outcomes(receipt) for answers in told for receipt in answers]
        assert sorted(outcomes_of) == [["conflict", "new"]] * 2 + [["new", "new"]] * 2, outcomes_of
    assert (Port.objects.count(), PortConflict.objects.count()) == (5 * 6, 5 * 2)
    assert HCA.objects.exclude(server__in=rivals).count() == 0
    assert verify().is_sound

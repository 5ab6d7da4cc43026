"""The observer's rules, each broken once; what a fault does by itself is excused and nothing else."""

import hashlib
from dataclasses import replace

import pytest

from lab.fabric import generate
from lab.managers import first_partitions
from lab.observer import route_to, route_to_leaf, seat_of
from lab.observing import Allowed, Sample, violations

FABRIC = generate(servers=6, hcas=2)
FILE = first_partitions(FABRIC.managers)
SM, *_ = (hca.port_guid for hca in FABRIC.managers[0].hcas)
PORT, OTHER = FABRIC.servers[0].port_guids
ALLOWED = Allowed(
    revisions=frozenset({hashlib.sha256(FILE).hexdigest()}),
    tenants={0x2C41: "acme", 0x2C42: "acme", 0x2C51: "globex"},
    sm_ports=frozenset({SM}),
)
SOUND = Sample(
    ports={SM: {0: 0xFFFF}, PORT: {0: 0x7FFF, 1: 0xAC41, 2: 0xAC42}, OTHER: {0: 0x7FFF, 1: 0xAC51}},
    switch_ports={FABRIC.leaves[0].guid: {0: 0xFFFF}},
    leaf_copies={PORT: {0: 0x7FFF, 1: 0xAC41}},
    files={"sm-a": FILE, "sm-b": FILE},
)


def found(sample, allowed=ALLOWED):
    return [(violation.kind, violation.where) for violation in violations(sample, allowed)]


def with_port(keys):
    return replace(SOUND, ports={**SOUND.ports, PORT: keys})


def with_file(data):
    return replace(SOUND, files={**SOUND.files, "sm-b": data})


def test_a_sound_sample_breaks_no_rule():
    assert found(SOUND) == []


@pytest.mark.parametrize(
    ("sample", "kind", "where"),
    [
        (with_port({0: 0x7FFF, 1: 0xAC41, 5: 0xAC51}), "tenants", f"port {PORT}"),
        (with_port({0: 0x7FFF, 1: 0x2C41, 5: 0xAC51}), "tenants", f"port {PORT}"),  # limited in one of them
        (replace(SOUND, leaf_copies={PORT: {1: 0xAC41, 2: 0xAC51}}), "tenants", f"leaf copy of port {PORT}"),
        (with_port({0: 0xFFFF}), "fallback", PORT),
        (with_file(FILE.replace(b"\n", b"\r\n")), "file", "sm-b"),
        (with_file(FILE[:-3]), "file", "sm-b"),
        (with_file(b""), "file", "sm-b"),
        (with_file(None), "file", "sm-b"),
        (with_file(FILE.replace(b"revision=1", b"revision=2")), "file", "sm-b"),  # sound, and nobody knows it
    ],
)
def test_each_rule_names_what_breaks_it(sample, kind, where):
    assert found(sample) == [(kind, where)]


@pytest.mark.parametrize(
    ("sample", "excuse"),
    [
        (with_port({0: 0xFFFF}), "fallback"),
        (with_file(b""), "file:sm-b"),
        (with_port({1: 0xAC41, 2: 0xAC51}), "tenants"),
    ],
)
def test_a_fault_excuses_only_what_it_does_itself(sample, excuse):
    assert found(sample, replace(ALLOWED, excused=frozenset({excuse}))) == []
    others = {"fallback", "file:sm-a", "file:sm-b", "tenants"} - {excuse}
    assert found(sample, replace(ALLOWED, excused=frozenset(others))) != []


def test_a_port_that_does_not_answer_makes_a_sample_incomplete_unless_a_fault_took_it():
    sample = with_port(None)
    assert sample.silent(ALLOWED) == [PORT]
    assert sample.silent(replace(ALLOWED, excused=frozenset({f"port:{PORT}"}))) == []
    assert found(sample) == []


def test_every_port_has_a_way_that_its_cables_allow():
    nodes = {switch.node_id: switch for switch in FABRIC.switches}
    for hca in FABRIC.hcas():
        here = f"S-{seat_of(FABRIC).leaf_guid[2:]}"  # out of the HCA by its only port
        for port in route_to(FABRIC, hca)[1:]:
            here = next(other for own, other, _ in nodes[here].cables if own == port)
        assert here == hca.node_id
    for leaf in FABRIC.leaves:
        assert route_to_leaf(FABRIC, leaf.guid)[0] == 1

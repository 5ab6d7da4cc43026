"""Every case three ways: what was expected, what the model says, what the real OpenSM does; also under other names."""

import pytest

from lab.oracle import Oracle
from subnet.opensm_reading import Fabric, read
from tests.lab.cases_of_a import cases, rekeyed, renamed, reordered

pytestmark = pytest.mark.contract
CASES = cases()
VARIANTS = [
    *(renamed(case, 1) for case in CASES),
    *(variant for case in CASES if (variant := rekeyed(case))),
    *(variant for case in CASES if (variant := reordered(case))),
]


@pytest.fixture(scope="module")
def oracle_of():
    """The oracle of a fabric, started when first asked for."""
    oracles = {}

    def of(net):
        if net not in oracles:
            oracles[net] = Oracle(net).__enter__()
        return oracles[net]

    yield of
    for oracle in oracles.values():
        oracle.close()


def named(case):
    return case.name


@pytest.mark.parametrize("case", CASES + VARIANTS, ids=named)
def test_expected_and_opensm_agree(case, oracle_of):
    answer = oracle_of(case.net).run(case.data, sm_port=case.sm_port, options=case.options)
    assert not answer.died
    assert answer.rejected is case.rejected
    if case.error:
        line, message = answer.rejection
        assert f"PARSE ERROR: line {line}: {message}" == case.error
    assert answer.tables == case.tables


@pytest.mark.parametrize("case", CASES + VARIANTS, ids=named)
def test_expected_and_model_agree(case):
    both, qos = "-W" in case.options, "-Q" in case.options
    fabric = Fabric.from_net(case.net, sm_port=case.sm_port)
    reading = read(case.data, fabric, allow_both_pkeys=both, qos=qos)
    assert (reading.rejection is not None) is case.rejected
    if case.error:
        assert f"PARSE ERROR: line {reading.rejection.line}: {reading.rejection.message}" == case.error
    assert reading.tables == case.tables


def test_the_variants_differ_from_the_cases():
    """No look-up by bytes, GUID, name or key passes; what has no GUID and no name has only another fabric."""
    by_name = {case.name: case for case in CASES}
    same = {variant.name for variant in VARIANTS if variant.data == by_name[variant.name.split()[0]].data}
    assert same == {"A11 renamed", "A20 renamed", "A29 renamed"}
    assert all(renamed(case, 1).net != case.net for case in CASES)
    moved = [case for case in CASES if renamed(case, 1).sm_port[-5] != case.sm_port[-5]]
    assert len(moved) > len(CASES) / 2
    kinds = [variant.name.split()[1] for variant in VARIANTS]
    assert min(kinds.count("rekeyed"), kinds.count("reordered")) >= 5

"""The real OpenSM gives every port the same table by the file that was found and by the one that replaces it."""

import pytest

from lab.oracle import Oracle
from subnet.adoption_proof import explain
from subnet.opensm_reading import Fabric
from tests.subnet.by_hand import BY_HAND
from tests.subnet.test_adoption import HEADER, LEAVES, SM_PORTS, N, observed

pytestmark = pytest.mark.contract


def net() -> str:
    """Two leaves with three HCAs each, as `tests/subnet/test_adoption.py` numbers them, in the simulator's language."""
    lines = []
    for leaf, guid in enumerate(LEAVES):
        lines += [f"switchguid=0x{guid[2:]}", f'Switch\t8 "S-{guid[2:]}"\t# "leaf{leaf + 1}"']
        for port, number in enumerate(range(3 * leaf + 1, 3 * leaf + 4), start=1):
            lines.append(f'[{port}]\t"H-{N[number][2:-4]}0000"[1]')
        lines += [f'[7]\t"S-{LEAVES[1 - leaf][2:]}"[7]', ""]
    for number, guid in N.items():
        node = f"{guid[2:-4]}0000"
        leaf, port = divmod(number - 1, 3)
        lines += [
            f"caguid=0x{node}",
            f'Ca\t2 "H-{node}"\t# "node{number:02}"',
            f'[1]\t"S-{LEAVES[leaf][2:]}"[{port + 1}]',
            "",
        ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def oracle():
    with Oracle(net()) as oracle:
        yield oracle


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_opensm_makes_the_same_of_both_files(oracle, name: str):
    found = BY_HAND[name]
    explanation = explain(found, observed(found), master=N[1], sm_ports=SM_PORTS, header=HEADER)
    before, after = (oracle.run(data, sm_port=N[1]) for data in (found, explanation.data))
    assert not before.rejected
    assert not after.rejected
    assert set(before.tables) == {*N.values(), *LEAVES}
    assert after.tables == before.tables


def test_the_model_of_the_fabric_is_the_simulators(oracle):
    assert Fabric.from_net(net(), sm_port=N[1]).ports.keys() == {*N.values(), *LEAVES}

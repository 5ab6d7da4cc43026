"""What the controller makes of two set-ups: path MTU, addresses, P_Keys, and which pairs it refuses."""

import pytest

from probes.crossing import CannotCross, choose_gids, cross
from probes.terms import Mode, Order, Outcome, PortChoice, Profile, Verb
from tests.probes.ends import port, setup

LINK = Profile("link", Verb.WRITE, 1 << 20, 4, Mode.CONTIGUOUS, 1 << 24)
ON_PKEY = Order(LINK, 1, pkey=0x10)
ON_ETHERNET = Order(LINK, 1)
NEAR = [3, "0000:0000:0000:0000:0000:ffff:c0a8:4d01", "ipv4", "eth1"]
NEAR_TOO = [5, "0000:0000:0000:0000:0000:ffff:c0a8:4d02", "ipv4", "eth1"]
FAR = [1, "0000:0000:0000:0000:0000:ffff:0a00:0001", "ipv4", "eth2"]
LINK_LOCAL = [0, "fe80:0000:0000:0000:5054:00ff:feaa:0102", "link", "eth1"]


def ethernet(number, gids):
    return setup(number, port=port(number, link_layer="Ethernet"), gids=gids, pkey_index=0, pkey_entry=0xFFFF, lid=0)


def test_each_end_hears_of_the_other():
    crossing = cross(ON_PKEY, setup(1), setup(2, rkey=9, memory=77, psns=[8]))
    assert crossing.sender["peer"] == {"qpns": [102], "psns": [8], "rkey": 9, "memory": 77, "lid": 2}
    assert crossing.target["peer"]["qpns"] == [101]
    assert crossing.sender["gid_index"] is None


def test_the_smaller_mtu_and_the_fewer_outstanding_reads_are_used():
    crossing = cross(ON_PKEY, setup(1, mtu=5, rd_atomic=4), setup(2, mtu=3))
    assert (crossing.sender["mtu"], crossing.target["mtu"], crossing.mtu_bytes) == (3, 3, 1024)
    assert crossing.target["rd_atomic"] == 4


@pytest.mark.parametrize("entries", [(0x8010, 0x8010), (0x8010, 0x0010), (0x0010, 0x8010)])
def test_one_full_member_is_enough(entries):
    assert cross(ON_PKEY, setup(1, pkey_entry=entries[0]), setup(2, pkey_entry=entries[1]))


@pytest.mark.parametrize(
    ("sender", "target", "order", "outcome", "words"),
    [
        (setup(1, pkey_entry=0x10), setup(2, pkey_entry=0x10), ON_PKEY, Outcome.NO_COMMON_PKEY, "limited members"),
        (setup(1, pkey_entry=0x8011), setup(2), ON_PKEY, Outcome.NO_COMMON_PKEY, "0x8011"),
        (setup(1, lid=0), setup(2), ON_PKEY, Outcome.NO_ADDRESS, "no LID"),
        (setup(1), setup(2, port=port(1)), ON_PKEY, Outcome.REFUSED_EVIDENCE, "same HCA"),
        (setup(1), ethernet(2, [NEAR]), ON_PKEY, Outcome.UNSUPPORTED, "InfiniBand, the target's Ethernet"),
        (ethernet(1, [NEAR]), ethernet(2, [NEAR]), ON_PKEY, Outcome.UNSUPPORTED, "P_Keys do not apply"),
        (ethernet(1, [NEAR]), ethernet(2, [LINK_LOCAL]), ON_ETHERNET, Outcome.NO_ADDRESS, "ipv4, the target link"),
        (ethernet(1, []), ethernet(2, [NEAR]), ON_ETHERNET, Outcome.NO_ADDRESS, "the sender has none"),
    ],
)
def test_refuses(sender, target, order, outcome, words):
    with pytest.raises(CannotCross, match=words) as refused:
        cross(order, sender, target)
    assert refused.value.outcome is outcome


def test_the_ends_may_use_different_gid_indexes():
    crossing = cross(ON_ETHERNET, ethernet(1, [LINK_LOCAL, FAR, NEAR]), ethernet(2, [LINK_LOCAL, NEAR_TOO]))
    assert crossing.sender["gid_index"] == 3
    assert crossing.sender["peer_gid"] == NEAR_TOO[1]
    assert crossing.target["gid_index"] == 5


def test_the_ordered_interface_decides():
    order = Order(LINK, 1, sender=PortChoice(interface="eth2"))
    assert choose_gids([NEAR, FAR], [NEAR_TOO], order)[0].interface == "eth2"


def test_link_local_addresses_are_the_last_choice():
    ours, theirs = choose_gids([LINK_LOCAL], [LINK_LOCAL, NEAR_TOO], ON_ETHERNET)
    assert (ours.family, theirs.family) == ("link", "link")

"""Every pair once a cycle, disjoint within a round, whatever the number of hosts."""

from itertools import islice, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pairing import full_cycle, pairs_of_round, quick_round, rounds, take

SIZES = st.integers(0, 33)


def hosts_of(size: int) -> list[int]:
    return [100 + 7 * number for number in range(size)]


@given(SIZES)
def test_rounds_are_disjoint_and_cover_every_pair_once(size):
    hosts = hosts_of(size)
    seen = []
    for number in range(rounds(hosts)):
        pairs = pairs_of_round(hosts, number)
        ends = [end for pair in pairs for end in pair]
        assert len(ends) == len(set(ends))
        assert len(pairs) == size // 2
        seen += [frozenset(pair) for pair in pairs]
    assert len(seen) == len(set(seen)) == size * (size - 1) // 2


@given(SIZES, st.integers(0, 10_000))
def test_from_any_position_a_cycle_is_every_ordered_pair_once(size, position):
    hosts = hosts_of(size)
    taken = list(take(hosts, position))
    assert len(taken) == full_cycle(hosts)
    assert set(taken) == set(permutations(hosts, 2))


@given(st.integers(2, 20), st.integers(0, 500), st.integers(1, 9))
def test_steps_of_any_size_continue_where_the_last_one_ended(size, position, step):
    hosts = hosts_of(size)
    total = full_cycle(hosts)
    stepped = []
    for _ in range(-(-total // step)):
        stepped += islice(take(hosts, position), step)
        position += step
    assert stepped[:total] == list(take(hosts, position - step * -(-total // step)))


@given(st.integers(4, 33))
def test_nobody_sends_all_the_time_in_the_first_half_of_a_cycle(size):
    hosts = hosts_of(size)
    senders = [sender for number in range(rounds(hosts)) for sender, _ in pairs_of_round(hosts, number)]
    for host in hosts:
        assert 0 < senders.count(host) < size - 1


@pytest.mark.parametrize(
    ("size", "count", "a_round"),
    [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 3, 1), (4, 3, 2), (64, 63, 32), (256, 255, 128), (511, 511, 255)],
)
def test_the_numbers_of_kvprobe_5(size, count, a_round):
    hosts = hosts_of(size)
    assert rounds(hosts) == count
    assert len(pairs_of_round(hosts, 0)) == a_round


def test_a_quick_round_has_each_host_once():
    assert quick_round([1, 2, 3, 4]) == [(1, 3), (2, 4)]
    assert quick_round([1, 2, 3, 4, 5]) == [(1, 4), (2, 5)]
    assert quick_round([1]) == []

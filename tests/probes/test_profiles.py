"""Names become sizes, and stay within what a host pins and a fabric bears."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.kv_models import BY_NAME
from probes.profiles import (
    DEFAULT,
    LARGEST_BUFFER,
    MOST_PIECES,
    NAMES,
    UnknownProfile,
    check_names,
    profile,
    words_for,
)
from probes.terms import Mode, Verb

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("name", "verb", "piece", "mode"),
    [
        ("link", Verb.WRITE, MIB, Mode.CONTIGUOUS),
        ("kv-scatter-4k", Verb.WRITE, 4 * KIB, Mode.SCATTER),
        ("kv-scatter-16k", Verb.WRITE, 16 * KIB, Mode.SCATTER),
        ("kv-64k", Verb.WRITE, 64 * KIB, Mode.SCATTER),
        ("kv-block", Verb.WRITE, MIB, Mode.SCATTER),
        ("kv-pull", Verb.READ, 16 * KIB, Mode.SCATTER),
        ("lat", Verb.WRITE, 8, Mode.LATENCY),
    ],
)
def test_the_profiles_of_kvprobe(name, verb, piece, mode):
    made = profile(name)
    assert (made.name, made.verb, made.piece_bytes, made.mode) == (name, verb, piece, mode)
    assert words_for(name)
    if mode is not Mode.LATENCY:
        assert made.total_bytes == GIB


def test_latency_has_samples_enough_for_p999():
    made = profile("lat", most_bytes=1)
    assert made.total_bytes // made.piece_bytes == 10_000
    assert made.buffer_bytes == 8


@pytest.mark.parametrize(
    ("name", "piece", "total"),
    [
        ("model:llama-3.1-70b@8192", 4 * KIB, 81_920 * 4 * KIB),  # kvprobe 1.2
        ("model:deepseek-v3@8192", 18 * KIB, 31_232 * 18 * KIB),
        ("model:llama-3.1-70b@131072", 4 * KIB, GIB),  # capped
    ],
)
def test_a_model_gives_its_own_pieces(name, piece, total):
    made = profile(name)
    assert (made.piece_bytes, made.total_bytes) == (piece, total)
    assert made.mode is Mode.SCATTER


@given(
    st.one_of(
        st.sampled_from(NAMES),
        st.builds("model:{}@{}".format, st.sampled_from(sorted(BY_NAME)), st.integers(1, 1_048_576)),
    ),
    st.integers(1, 64 * GIB),
)
def test_no_profile_is_impolite(name, most_bytes):
    made = profile(name, most_bytes=most_bytes)
    assert 1 <= made.pieces <= MOST_PIECES
    assert made.buffer_bytes <= LARGEST_BUFFER
    assert made.total_bytes >= made.piece_bytes
    assert 1 <= made.queue_pairs <= 8
    if made.mode is not Mode.LATENCY:
        assert made.total_bytes <= max(most_bytes, made.piece_bytes)
        assert made.total_bytes % made.piece_bytes == 0


@pytest.mark.parametrize(
    "name",
    ["", "LINK", "kv-scatter", "model:", "model:llama-3.1-70b", "model:nobody@8192", "model:llama-3.1-70b@0",
     "model:llama-3.1-70b@9999999", "model:llama-3.1-70b@8192\n", "model:llama-3.1-70b@٣"],
)  # fmt: skip
def test_other_names_are_refused_with_what_there_is(name):
    with pytest.raises(UnknownProfile):
        profile(name)


def test_a_list_of_names_is_cleaned():
    assert check_names([" link", "lat", "link", ""]) == ("link", "lat")
    assert check_names(DEFAULT) == DEFAULT
    with pytest.raises(UnknownProfile, match="at least one"):
        check_names([""])

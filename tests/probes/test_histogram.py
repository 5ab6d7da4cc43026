"""Fixed log buckets: exact where they are narrow, mergeable, and percentiles that no average can give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.histogram import BUCKETS, LARGEST, Histogram, bounds, bucket_of, supported

VALUES = st.integers(min_value=0, max_value=LARGEST)


@pytest.mark.parametrize(
    ("value", "bucket"),
    # worked out by hand; stored rows depend on them, so they never change
    [(0, 0), (1, 1), (7, 7), (8, 8), (15, 15), (16, 16), (18, 17), (31, 23), (32, 24), (1000, 63), (2**20, 144)],
)  # fmt: skip
def test_buckets_stay_where_they_are(value, bucket):
    assert bucket_of(value) == bucket


def test_buckets_follow_each_other_without_a_gap():
    edge = 0
    for bucket in range(BUCKETS):
        low, above = bounds(bucket)
        assert low == edge
        assert bucket_of(low) == bucket == bucket_of(above - 1)
        edge = above
    assert edge == LARGEST + 1


@given(VALUES)
def test_a_bucket_is_at_most_an_eighth_wide(value):
    low, above = bounds(bucket_of(value))
    assert low <= value < above
    assert above - low == 1 or (above - low) * 8 <= low


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300), st.sampled_from([1, 50, 90, 99, 99.9, 100]))
def test_a_percentile_is_near_the_sample_of_that_rank(values, share):
    rank = max(1, -int(-(len(values) * share) // 100))
    true = sorted(values)[rank - 1]
    found = Histogram.of(values).percentile(share)
    assert abs(found - true) <= max(0.5, true / 16)


@given(st.lists(VALUES, max_size=60), st.lists(VALUES, max_size=60), st.lists(VALUES, max_size=60))
def test_merging_is_counting_all_together(one, two, three):
    merged = Histogram.of(one).merged(Histogram.of(two), Histogram.of(three))
    assert merged == Histogram.of([*one, *two, *three])
    assert merged == Histogram.of(three).merged(Histogram.of(one).merged(Histogram.of(two)))
    assert Histogram.from_json(merged.to_json()) == merged


def test_a_merged_percentile_is_not_the_mean_of_percentiles():
    quiet, rough = Histogram.of([10] * 1000), Histogram.of([10_000] * 10)
    mean = (quiet.percentile(99) + rough.percentile(99)) / 2
    assert quiet.merged(rough).percentile(99) == 10
    assert mean > 4000


@pytest.mark.parametrize(
    "stored",
    [None, [], {"x": 1}, {"-1": 1}, {"480000": 1}, {"504": 1},
     {"1": -1}, {"1": 1.5}, {"1": True}, {"1": "2"}, {"²": 1}, {True: 1}],
)  # fmt: skip
def test_what_a_host_sends_is_not_believed(stored):
    with pytest.raises(ValueError, match=r"histogram|bucket|count"):
        Histogram.from_json(stored)


@pytest.mark.parametrize(
    "stored", [None, {"1": 1}, [1], [[1]], [[1, 1], [1, 2]], [["1", 1]], [[[], 1]], [[1, -1]], [[488, 1]]]
)
def test_pairs_of_a_host_are_not_believed_either(stored):
    with pytest.raises(ValueError, match=r"histogram|bucket|count"):
        Histogram.from_pairs(stored)


def test_pairs_are_read():
    # the rule of probes.terms: e = floor(log2 v), bucket = (e - 2) * 8 + ((v >> (e - 3)) & 7)
    value = 5000
    exponent = value.bit_length() - 1
    bucket = (exponent - 2) * 8 + ((value >> (exponent - 3)) & 7)
    assert Histogram.from_pairs([[bucket, 3]]) == Histogram.of([value] * 3)


def test_nothing_measured_has_no_percentile():
    assert Histogram().percentile(50) is None
    with pytest.raises(ValueError, match="percentile"):
        Histogram().percentile(0)


def test_few_samples_support_no_p99():
    assert supported(50, samples=1)
    assert not supported(99, samples=999)
    assert not supported(99.9, samples=9_999)

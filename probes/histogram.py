"""A histogram of fixed log-spaced buckets: small enough to keep for years, and mergeable, so that a percentile over a
month comes from all its samples and never from an average of percentiles.

Buckets are those of HdrHistogram's idea with 3 bits below the leading one: values under 16 each have their own; above,
every power of two is cut into 8, so a bucket is at most 12.5 % wide. The bounds never change: rows depend on them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Self

SUB_BITS: Final = 3
SUB: Final = 1 << SUB_BITS  # sub-buckets of each power of two
LARGEST: Final = (1 << 63) - 1  # a value beyond is counted as this one
BUCKETS: Final = (63 - SUB_BITS) * SUB + SUB  # numbers run from 0 to BUCKETS - 1


def bucket_of(value: int) -> int:
    """The number of the bucket that `value` (a whole number of at least 0) falls into."""
    if value < 0:
        raise ValueError(f"A histogram counts from 0; {value} is no such measurement.")
    value = min(value, LARGEST)
    if value < SUB:
        return value
    shift = value.bit_length() - 1 - SUB_BITS
    return shift * SUB + (value >> shift)


def bounds(bucket: int) -> tuple[int, int]:
    """The least value of a bucket and the least value above it."""
    if not 0 <= bucket < BUCKETS:
        raise ValueError(f"Bucket {bucket} is not one of the {BUCKETS} there are.")
    if bucket < SUB:
        return bucket, bucket + 1
    shift = bucket // SUB - 1
    low = (bucket - shift * SUB) << shift
    return low, low + (1 << shift)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many samples fell into which bucket; only buckets with samples are held."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Iterable[int]) -> Self:
        """Count whole numbers."""
        counts: dict[int, int] = {}
        for value in values:
            bucket = bucket_of(value)
            counts[bucket] = counts.get(bucket, 0) + 1
        return cls(counts)

    @classmethod
    def from_json(cls, stored: object) -> Self:
        """Read what `to_json` wrote, or what a host sent: {"bucket": count}. Raises ValueError for anything else."""
        if not isinstance(stored, Mapping) or len(stored) > BUCKETS:
            raise ValueError("A histogram is an object of bucket numbers and counts.")
        counts: dict[int, int] = {}
        for key, count in stored.items():
            is_number = isinstance(key, int) or (isinstance(key, str) and key.isascii() and key.isdecimal())
            if not is_number or isinstance(key, bool) or len(str(key)) > 4 or not 0 <= int(key) < BUCKETS:
                raise ValueError(f"{str(key)[:20]!r} is no bucket of this histogram.")
            if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= LARGEST:
                raise ValueError(f"{str(count)[:20]!r} is no count of samples.")
            if count:
                counts[int(key)] = counts.get(int(key), 0) + count
        return cls(counts)

    @classmethod
    def from_pairs(cls, pairs: object) -> Self:
        """Read [[bucket, count], …], as a run's figures hold it. Raises ValueError for anything else."""
        if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError("A histogram is a list of pairs of bucket number and count.")
        if any(not isinstance(bucket, int) for bucket, _ in pairs) or len({bucket for bucket, _ in pairs}) != len(
            pairs
        ):
            raise ValueError("The buckets of a histogram are different whole numbers.")
        return cls.from_json(dict(pairs))

    def to_json(self) -> dict[str, int]:
        """As it is stored: bucket number as text → count, in order."""
        return {str(bucket): self.counts[bucket] for bucket in sorted(self.counts)}

    @property
    def samples(self) -> int:
        """How many samples were counted."""
        return sum(self.counts.values())

    def merged(self, *others: "Histogram") -> "Histogram":
        """The histogram of all samples together."""
        counts = dict(self.counts)
        for other in others:
            for bucket, count in other.counts.items():
                counts[bucket] = counts.get(bucket, 0) + count
        return Histogram(counts)

    def percentile(self, share: float) -> float | None:
        """The value below which `share` per cent of the samples lie (nearest rank); None without samples.

        It is the middle of the bucket that holds that sample, so it is off by at most 6.25 % of the true sample.
        """
        if not 0 < share <= 100:
            raise ValueError(f"{share} is no percentile; it is a number above 0 and up to 100.")
        total = self.samples
        if total == 0:
            return None
        rank = max(1, -int(-(total * share) // 100))  # ceiling: the nearest-rank definition
        buckets = sorted(self.counts)
        reached = list(accumulate(self.counts[bucket] for bucket in buckets))
        low, above = bounds(buckets[bisect_left(reached, rank)])
        return (low + above - 1) / 2


# Below these a percentile says more about one outlier than about the link (ground truth: kvprobe 2.2).
LEAST_SAMPLES: Final[Mapping[float, int]] = {50: 1, 90: 20, 99: 1_000, 99.9: 10_000}


def supported(share: float, *, samples: int) -> bool:
    """Whether `samples` are enough to speak of the percentile `share`."""
    return samples >= LEAST_SAMPLES.get(share, 1)

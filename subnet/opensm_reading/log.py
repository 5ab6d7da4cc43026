"""The findings of one reading: collected in any order, counted when there are too many, given out by place."""

from collections import Counter
from collections.abc import Iterable

from subnet.opensm_reading.rules import RULES
from subnet.opensm_reading.values import Finding, Severity

MOST_PER_RULE = 100
_RANK: dict[Severity, int] = {"ok": 0, "warn": 1, "refuse": 2}


class Log:
    """Findings, at most MOST_PER_RULE of a rule; what goes beyond is counted and said with the last of them."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._count: Counter[str] = Counter()

    def wants(self, rule: str) -> bool:
        """Whether another finding of the rule would be kept; one that would not is counted here."""
        self._count[rule] += 1
        return self._count[rule] <= MOST_PER_RULE

    def add(
        self, rule: str, line: int, column: int, message: str, fix: str, *, severity: Severity | None = None
    ) -> None:
        """Keep a finding of `rule`, with the rule's severity unless another is given."""
        if self.wants(rule):
            self.keep(rule, line, column, message, fix, severity=severity)

    def keep(
        self, rule: str, line: int, column: int, message: str, fix: str, *, severity: Severity | None = None
    ) -> None:
        """Keep a finding that `wants` was asked for, which saves writing messages that nobody will read."""
        self._findings.append(Finding(line, column, rule, severity or RULES[rule], message, fix))

    @property
    def kept(self) -> int:
        """How many findings are kept."""
        return len(self._findings)

    def is_full(self, rule: str) -> bool:
        """Whether further findings of the rule are only counted."""
        return self._count[rule] >= MOST_PER_RULE

    def counts(self) -> dict[str, int]:
        """How often each rule was offended so far."""
        return dict(self._count)

    def count(self, times: Iterable[tuple[str, int]]) -> None:
        """Count rules as offended so many times more, of which no finding would be kept."""
        for rule, more in times:
            self._count[rule] += more

    def has(self, rule: str) -> bool:
        """Whether the rule was offended."""
        return bool(self._count[rule])

    def findings(self) -> tuple[Finding, ...]:
        """The findings by line and column; the last of a rule with too many says how many more there are."""
        kept = sorted(self._findings, key=lambda finding: (finding.line, finding.column))
        last = {finding.rule: index for index, finding in enumerate(kept)}
        for rule, index in last.items():
            more = self._count[rule] - MOST_PER_RULE
            if more > 0:
                one = kept[index]
                message = f"{one.message} The same is so in {more} further places."
                kept[index] = Finding(one.line, one.column, rule, one.severity, message, one.fix)
        return tuple(kept)


def verdict(findings: tuple[Finding, ...]) -> Severity:
    """The worst severity among the findings; ok without any."""
    return max((finding.severity for finding in findings), key=_RANK.__getitem__, default="ok")

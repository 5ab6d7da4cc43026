"""Posture: each question about the managers answered yes, no or unknown, with its sentence."""

import pytest

from subnet.posture import DEFAULTS, ManagerPosture, checks


def manager(name: str, *, version="3.3.23", keys=None, is_stale=False, priority=5, **options: str) -> ManagerPosture:
    return ManagerPosture(name, version, {"sm_priority": str(priority), **options}, keys or {}, is_stale, priority)


def answers(*managers: ManagerPosture) -> dict[str, tuple[str, str]]:
    return {check.name: (check.answer, check.sentence) for check in checks(managers)}


def test_managers_with_nothing_set_agree_by_openSMs_own_defaults():
    found = answers(manager("a"), manager("b", priority=4))
    assert {answer for answer, _ in found.values()} == {"yes"}
    assert found.keys() == DEFAULTS.keys() - {"no_partition_enforcement"} | {"version", "m_key", "sm_key", "sa_key"}


@pytest.mark.parametrize(
    ("option", "value"),
    [("keep_pkey_indexes", "FALSE"), ("keep_pkey_indexes", "true"), ("allow_both_pkeys", "TRUE"),
     ("ignore_other_sm", "TRUE")],
)  # fmt: skip
def test_what_the_plans_rest_on_is_no_even_where_all_agree(option, value):
    answer, sentence = answers(manager("a", **{option: value}), manager("b", **{option: value}))[option]
    assert answer == "no"
    assert "must be" in sentence


@pytest.mark.parametrize(
    ("option", "value"),
    [("part_enforce", "in"), ("sminfo_polling_timeout", "500"), ("polling_retry_number", "2"), ("lmc", "1"),
     ("routing_engine", "ftree"), ("m_key_protection_level", "2")],
)  # fmt: skip
def test_an_option_that_differs_is_no_and_says_where(option, value):
    answer, sentence = answers(manager("a"), manager("b", **{option: value}))[option]
    assert answer == "no"
    assert f"{value} on b" in sentence


def test_no_enforcement_is_no_even_where_all_agree():
    assert answers(manager("a", part_enforce="off"), manager("b", part_enforce="off"))["part_enforce"][0] == "no"
    old = {"no_partition_enforcement": "TRUE"}
    assert answers(manager("a", **old), manager("b", **old))["part_enforce"][0] == "no"


def test_keys_are_compared_by_presence_and_never_called_equal():
    both = answers(manager("a", keys={"m_key": True}), manager("b", keys={"m_key": True}))["m_key"]
    assert both[0] == "unknown"
    assert "not read" in both[1]
    assert answers(manager("a", keys={"sm_key": True}), manager("b"))["sm_key"][0] == "no"


def test_versions_and_priorities():
    found = answers(manager("a", version="5.17.0"), manager("b"))
    assert found["version"][0] == "no"
    filed = ManagerPosture("a", "3.3.23", {"sm_priority": "9"}, {}, is_stale=False, priority=5)
    answer, sentence = answers(filed, manager("b"))["sm_priority"]
    assert answer == "no"
    assert "priority 5, its options say 9" in sentence


def test_who_does_not_answer_is_unknown_and_a_difference_among_others_is_told_all_the_same():
    silent = ManagerPosture("c", "", None, None, is_stale=False, priority=None)
    found = answers(manager("a"), manager("b"), silent)
    assert {answer for answer, _ in found.values()} == {"unknown"}
    assert answers(manager("a"), manager("b", lmc="1"), silent)["lmc"][0] == "no"


def test_a_file_changed_since_the_start_says_nothing_of_what_is_read_only_then():
    found = answers(manager("a", is_stale=True), manager("b"))
    assert found["allow_both_pkeys"][0] == "unknown"
    assert "changed since" in found["allow_both_pkeys"][1]
    assert found["keep_pkey_indexes"][0] == "yes"


def test_no_manager_no_question():
    assert checks(()) == ()

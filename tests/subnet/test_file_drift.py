"""A file that is not the current revision, in words: what OpenSM makes of it, and what that changes for whom."""

import pytest

from subnet.file_drift import explain_file
from subnet.observed import ObservedFabric, SeenSM
from subnet.partitions_conf import Header, render
from tests.subnet.fabrics import (
    INFERENCE,
    SM1,
    SM2,
    TRAINING,
    guid,
    partition,
    port,
    table,
)

LABELS = {guid(1): "srv-001", guid(2): "srv-001", guid(3): "srv-003"}
CURRENT = table(
    partition(TRAINING, "training", "acme", guid(1), guid(2), guid(3)),
    partition(INFERENCE, "inference", "acme", guid(4)),
    labels=LABELS,
)
FILE = render(CURRENT, Header("lab", 3))


def fabric() -> ObservedFabric:
    ports = [port(SM1), port(SM2), *(port(number) for number in range(1, 6))]
    sms = (SeenSM(SM1, 1, "MASTER", 5, 1), SeenSM(SM2, 2, "STANDBY", 4, 1))
    return ObservedFabric({one.guid: one for one in ports}, sms, "list", 1, 1, 0.1, 0)


def explained(data: bytes, observed=None):
    return explain_file(CURRENT, data, observed or fabric(), sm_port=SM1, sm_ports=(SM1, SM2))


def test_the_revisions_own_file_changes_nothing():
    found = explained(FILE)
    assert (found.rejection, found.sentences, found.changes_nothing) == ("", (), True)


def test_comments_and_names_change_nothing():
    found = explained(FILE.replace(b"training=", b"trainig=") + b"# by hand\n")
    assert found.changes_nothing


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ((f"{guid(3)}=full", f"{guid(2)}=full"), f"srv-003 ({guid(3)}) is no longer in training (0x2c41)."),
        ((f"{guid(4)}=full", f"{guid(4)}=full,\n {guid(5)}=limited"),
         f"port {guid(5)} is in inference (0x0044) too, as limited member."),
        ((f"{guid(3)}=full", f"{guid(3)}=limited"),
         f"srv-003 ({guid(3)}) is limited instead of full in training (0x2c41)."),
        (("# end", f"new=0x0abc : {guid(5)};\n# end"), "Partition new (0x0abc) is new: no partition has this P_Key."),
        (("# end", "new=0x0abc : ALL=full;\n# end"), "ALL makes every such port of the fabric a full member of new"),
        ((" ALL=limited,", " ALL=full,"), "Default opens: every port can reach every other."),
        (("training=0x2c41, ", "training=0x2c41, ipoib, "), "Flag ipoib of training (0x2c41): ipoib instead of not"),
    ],
)  # fmt: skip
def test_each_difference_is_a_sentence(edit, sentence):
    text = FILE.decode()
    assert edit[0] in text
    found = explained(text.replace(*edit, 1).encode())
    assert found.rejection == ""
    assert any(sentence in one for one in found.sentences), found.sentences


@pytest.mark.parametrize("data", [b"", FILE.replace(b"\n", b"\r\n"), b"training=0x2c41 : 0xzz;\n"])
def test_what_opensm_rejects_opens_the_fabric_and_says_so(data):
    found = explained(data)
    assert "every port becomes a full member of Default" in found.rejection
    assert found.plan is None


def test_a_file_that_was_cut_short_loses_its_last_members():
    cut = FILE[: FILE.index(str(guid(2)).encode())]
    found = explained(cut)
    assert any("no longer in training" in one for one in found.sentences)
    assert found.rejection == ""  # OpenSM takes it


def test_without_a_reading_of_the_fabric_it_says_what_it_cannot_tell():
    found = explain_file(CURRENT, FILE, None, sm_port=SM1, sm_ports=(SM1, SM2))
    assert found.unreadable
    assert explained(FILE, ObservedFabric({}, (), "list", 1, 1, 0.1, 0)).unreadable

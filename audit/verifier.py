#!/usr/bin/env python3
"""The rules of the trail, and a program that checks an exported one: `python3 verifier.py trail.jsonl --anchors …`.

The same for a document that was signed with the trail's key: `python3 verifier.py --document FILE --public-key …`.
One file of Python's standard library (3.9 or later), to be copied to a machine where FabricUI is not, and read by
whoever will believe it. FabricUI itself checks its database by the same rules (`audit/chain.py`).
"""

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import json
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GENESIS = "0" * 64  # what the first event names as the hash before it
CLOCK_STEP_S = 2  # a clock that falls back further than this is told by an event of its own
CLOCK_STEP = "audit:clock:step"
RESTORED = "audit:trail:restored"

# What is hashed, by the event's format. 1: the first chain. 2: address and links, and a code under a secret key.
HASHED_1 = (
    "number", "at", "action", "actor_kind", "actor_key", "actor_name", "subject_kind", "subject_key",
    "subject_label", "tenant_key", "before", "after", "reason", "request_id", "previous_hash",
)  # fmt: skip
HASHED_2 = (*HASHED_1, "format", "address", "rollout_key", "revision_key", "key_version")
HASHED = {1: HASHED_1, 2: HASHED_2}
NEWEST_FORMAT = 2

EDITED = "edited"  # an event says something else than its hash
MISSING = "missing"  # a number is not there: the event was deleted
DOUBLED = "doubled"  # a number is there twice, or is below the first
REORDERED = "reordered"  # an event stands in another's place
RELINKED = "relinked"  # an event is sound by itself but does not continue the one before
FORGED = "forged"  # an event was written, hash and all, by somebody who does not have the secret key
UNKEYED = "unkeyed"  # an event without a code, after events that had one
KEY = "key mismatch"  # the codes were made with other keys than these, or with one that is not here
CLOCK = "clock step"  # time runs backwards, and no event tells of it
TRUNCATED = "truncated"  # the end was cut off
HEAD = "head"  # the last event is not the one that the head of the chain remembers
REWRITTEN = "rewritten"  # an event is not the one that was anchored outside
SEAL = "seal"  # an anchor that disagrees with the trail, and is not signed with this key
UNREADABLE = "unreadable"  # a line of the export is no event

Event = Mapping[str, Any]
Source = Callable[[], Iterable[Event]]
Verify = Callable[[bytes, bytes, bytes], bool]  # public key, message, signature

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_quote = json.encoder.encode_basestring  # what _encode does with a text
_make: Any = getattr(json.encoder, "c_make_encoder", None)
_chunks = _make and _make(None, None, _quote, None, ":", ",", True, False, False)  # _encode makes one for each value


def canonical(value: Any) -> bytes:
    """Write plain JSON as bytes: keys sorted, no blanks, UTF-8."""
    return _encode(value).encode()


def content_hash(event: Event) -> str:
    """The hash of what an event says; `at` is text as 2026-12-01T13:59:00.000123Z."""
    said = {name: event[name] for name in HASHED[event["format"]]}
    return hashlib.sha256(canonical(said)).hexdigest()


def _written(value: Any) -> str:
    return _encode(value) if not _chunks else "".join(_chunks(value, 0))


_JSON = "before", "after"
_TEXTS = sorted({*HASHED_2} - {*_JSON, "format", "key_version", "number"})
_texts_of, _numbers_of = operator.itemgetter(*_TEXTS), operator.itemgetter("format", "key_version", "number")
_FORM = "{" + ",".join(f'"{name}":"%s"' if name in _TEXTS else f'"{name}":%s' for name in sorted(HASHED_2)) + "}"


def is_as_hashed(event: Event) -> bool:
    """Whether the event says what its hash is of. The quick way may only say yes; content_hash() has the last word."""
    try:
        return (event["format"] == NEWEST_FORMAT and _is_plainly(event)) or bool(content_hash(event) == event["hash"])
    except (TypeError, ValueError, RecursionError):  # what cannot be written as JSON and UTF-8 was never hashed
        return False


def _is_plainly(e: Event) -> bool:
    try:
        texts = _texts_of(e)
        if "\\" in _quote("".join(texts)):  # something is to be escaped
            texts = tuple([_quote(text)[1:-1] for text in texts])
        after, before = _written(e["after"]), "null" if e["before"] is None else _written(e["before"])
        text = _FORM % (*texts[:5], after, texts[5], before, *_numbers_of(e), *texts[6:])
        return bool(hashlib.sha256(text.encode()).hexdigest() == e["hash"])
    except TypeError:  # something is no text where text should be
        return False


def code(key: bytes, hash_: str) -> str:
    """The HMAC-SHA256 of an event's hash, which nobody can make without `key`."""
    inner, outer = _keyed(key)
    made, around = inner.copy(), outer.copy()
    made.update(bytes.fromhex(hash_))
    around.update(made.digest())
    return str(around.hexdigest())


@functools.lru_cache(maxsize=8)
def _keyed(key: bytes) -> tuple[Any, Any]:
    """The two hashes of RFC 2104 with the key in them: to go on from here is quicker than an HMAC anew."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return hashlib.sha256(bytes(byte ^ 0x36 for byte in block)), hashlib.sha256(bytes(byte ^ 0x5C for byte in block))


@dataclass(frozen=True)
class Anchor:
    """A signed head of the chain, as it was kept outside: event `number` had this hash at `sealed_at`."""

    number: int
    hash: str
    at: str  # of that event
    sealed_at: str
    key: str  # fingerprint of the public key
    signature: str = ""

    def statement(self) -> bytes:
        """The bytes that are signed."""
        said = {"number": self.number, "hash": self.hash, "at": self.at, "sealed_at": self.sealed_at, "key": self.key}
        return canonical({"fabricui_anchor": 1, **said})

    def line(self) -> str:
        """The anchor as it stands in a file, without the line's end."""
        return canonical({**json.loads(self.statement()), "signature": self.signature}).decode()

    def is_signed_by(self, public_key: bytes, verify: Verify) -> bool:
        """Whether the holder of the private half of `public_key` has said this."""
        try:
            signature = bytes.fromhex(self.signature)
        except ValueError:
            return False
        return self.key == fingerprint(public_key) and bool(verify(public_key, self.statement(), signature))


def fingerprint(public_key: bytes) -> str:
    """Which public key it is: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def anchors_in(text: str) -> Iterator[Anchor]:
    """The anchors in `text`, one a line at most; whatever stands before one (syslog's date and host) is passed over."""
    for line in text.splitlines():
        begin = line.find('{"at":')
        if begin < 0 or '"fabricui_anchor":1' not in line:
            continue
        try:
            said = json.JSONDecoder().raw_decode(line[begin:])[0]
            del said["fabricui_anchor"]
            yield Anchor(**said)
        except (ValueError, TypeError, KeyError):
            continue  # a line that was cut short; the anchors beside it say the same


@dataclass
class Report:
    """What was found. `broken_at` is the number of the first bad event, `kind` and `sentence` say what is wrong."""

    first: int = 1
    events: int = 0  # that were checked and are sound
    last_hash: str = GENESIS
    kind: str | None = None
    broken_at: int | None = None
    sentence: str = ""
    notes: list[str] = field(default_factory=list)  # what is no break, and a person should know
    anchored_to: int = 0  # the newest event that a signed anchor confirms

    @property
    def is_sound(self) -> bool:
        """Whether every event is as it was written and none is missing."""
        return self.kind is None

    @property
    def up_to(self) -> int:
        """The number of the last event that was checked and is sound."""
        return self.first + self.events - 1

    def break_at(self, number: int, kind: str, sentence: str) -> None:
        """Note a break; the one with the lowest number counts."""
        if self.broken_at is None or number < self.broken_at:
            self.broken_at, self.kind, self.sentence = number, kind, sentence


@dataclass
class Standing:
    """What the event before leaves for the next one: its number, hash, format, key and time."""

    number: int = 0
    hash: str = GENESIS
    format: int = 1
    key_version: int = 0
    at: str = ""

    @classmethod
    def after(cls, event: Event) -> Standing:
        """Stand behind `event`, which is believed."""
        return cls(event["number"], event["hash"], event["format"], event["key_version"], event["at"])


class Broken(Exception):
    """The first bad event, its kind and the sentence."""

    def __init__(self, number: int, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.number, self.kind = number, kind


class Walk:
    """One walk along a chain, from `standing` on, event by event.

    `source` gives the events in order, and gives them again when a break has to be told from another. `ring` are the
    secret keys by version; without it the codes are not checked. `anchors` are compared as they are passed.
    """

    def __init__(
        self,
        source: Source,
        *,
        standing: Standing | None = None,
        ring: Mapping[int, bytes] | None = None,
        anchors: Sequence[Anchor] = (),
    ) -> None:
        self.source = source
        self.before = standing or Standing()
        self.ring = ring
        self.report = Report(first=self.before.number + 1, last_hash=self.before.hash)
        self.proven: set[int] = set()  # key versions under which a code was right
        self.lost: list[tuple[int, int, str, int]] = []  # told by a restoration: first, last, when, in which event
        self.by_number: dict[int, list[Anchor]] = {}
        self.disagreeing: list[tuple[Anchor, str]] = []
        self.newest: Anchor | None = None
        self.anchors = anchors
        for anchor in anchors:
            self.by_number.setdefault(anchor.number, []).append(anchor)

    def run(self) -> None:
        """Walk to the end, or to the first break."""
        try:
            for event in self.source():
                self._check(event)
                self.report.events += 1
        except Broken as broken:
            self.report.break_at(broken.number, broken.kind, str(broken))
        self.report.last_hash = self.before.hash

    def _check(self, event: Event) -> None:
        number, before = event["number"], self.before
        if number != before.number + 1:
            raise self._out_of_line(number)
        if event["format"] not in HASHED:
            raise Broken(number, UNREADABLE, f"{tell(event)} has format {event['format']}, newer than this program.")
        if not is_as_hashed(event):
            raise self._altered(event)
        if event["previous_hash"] != before.hash:
            raise Broken(
                number,
                RELINKED,
                f"{tell(event)} does not continue event {before.number}: one of the two was replaced, hash and all.",
            )
        if event["format"] == 1:
            if before.format > 1:
                raise Broken(
                    number, UNKEYED, f"{tell(event)} has no code, and events before it have: it was put in its place."
                )
        else:
            self._check_code(event)
            self._check_time(event)
        if event["action"] == RESTORED:
            self._note_loss(event)
        if number in self.by_number:
            self._compare(number, event["hash"])
        before.number, before.hash, before.at = number, event["hash"], event["at"]
        before.format, before.key_version = event["format"], event["key_version"]

    def _out_of_line(self, number: int) -> Broken:
        expected = self.before.number + 1
        if number < expected:
            return Broken(number, DOUBLED, f"There is an event with the number {number} too many.")
        if any(event["number"] == expected for event in self.source()):
            return Broken(expected, REORDERED, f"Event {number} stands in the place of event {expected}.")
        return Broken(
            expected,
            MISSING,
            f"Event {expected} is missing: event {number} follows event {expected - 1}. It was deleted, or its number "
            "was changed.",
        )

    def _altered(self, event: Event) -> Broken:
        """Tell a changed number from changed words: its words and its hash fit together under the number it had."""
        number = event["number"]
        had = next((other for other in _nearby(number) if is_as_hashed({**event, "number": other})), None)
        if had is None:
            return Broken(number, EDITED, f"{tell(event)} was edited: what it says does not match its hash.")
        for other in self.source():
            is_elsewhere = other["previous_hash"] == self.before.hash and other["number"] != number
            if is_elsewhere and is_as_hashed({**other, "number": number}):
                sentence = f"Event {number} was moved to {other['number']}, and what was event {had} to its place."
                return Broken(number, REORDERED, sentence)
        return Broken(
            number, MISSING, f"Event {number} is missing: what was event {had} was given its number, to close the gap."
        )

    def _check_code(self, event: Event) -> None:
        number, version = event["number"], event["key_version"]
        if version < self.before.key_version:
            raise Broken(
                number,
                FORGED,
                f"{tell(event)} uses key {version}, which was replaced before it by key {self.before.key_version}.",
            )
        if self.ring is None:
            return
        key = self.ring.get(version)
        if key is None:
            held = ", ".join(map(str, sorted(self.ring))) or "none"
            raise Broken(
                number, KEY, f"{tell(event)} has a code under key {version}, which is not here (held: {held})."
            )
        if code(key, event["hash"]) == event["mac"]:
            self.proven.add(version)
            return
        if version not in self.proven and not any(self._has_code(other, version, key) for other in self.source()):
            raise Broken(
                number, KEY, f"From event {number} on no code fits key {version}: the trail was written with another."
            )
        raise Broken(
            number, FORGED, f"{tell(event)} was written by somebody who does not have key {version}: its code is wrong."
        )

    def _has_code(self, event: Event, version: int, key: bytes) -> bool:
        try:
            return bool(event["key_version"] == version and code(key, event["hash"]) == event["mac"])
        except (TypeError, ValueError):  # its hash, which nobody has checked yet, is no hex
            return False

    def _check_time(self, event: Event) -> None:
        at, before = event["at"], self.before.at
        if at >= before:  # text of one form: as they sort, so they follow one another
            return
        if event["action"] == CLOCK_STEP:
            self.report.notes.append(f"Event {event['number']} tells that the clock went back, from {before} to {at}.")
            return
        raise Broken(
            event["number"], CLOCK, f"{tell(event)} says it happened before event {self.before.number} ({before})."
        )

    def _note_loss(self, event: Event) -> None:
        try:
            first, last = int(event["after"]["lost_from"]), int(event["after"]["lost_to"])
        except (TypeError, KeyError, ValueError):
            return  # it explains nothing then
        self.lost.append((first, last, event["at"], event["number"]))
        self.report.notes.append(
            f"Event {event['number']} tells that the database was restored and events {first} to {last} were lost."
        )

    def _compare(self, number: int, hash_: str) -> None:
        for anchor in self.by_number[number]:
            if anchor.hash != hash_:
                self.disagreeing.append((anchor, REWRITTEN))
            elif self.newest is None or anchor.sealed_at > self.newest.sealed_at:
                self.newest = anchor

    # --- at the end ----------------------------------------------------------------------------------------------
    def conclude(self, *, head: tuple[int, str] | None, public_key: bytes | None, verify: Verify) -> Report:
        """Compare the end with the head of the chain and with the anchors; give the report."""
        report = self.report
        if report.is_sound and head is not None:
            self._compare_head(*head)
        if report.is_sound or report.kind in {TRUNCATED, HEAD}:
            last = self.before.number
            self.disagreeing += [(anchor, TRUNCATED) for anchor in self.anchors if anchor.number > last]
        for anchor, kind in sorted(self.disagreeing, key=lambda one: one[0].number):
            if public_key is not None and not anchor.is_signed_by(public_key, verify):
                self._break_by_anchor(anchor, SEAL)
            elif not self._is_told_lost(anchor):
                self._break_by_anchor(anchor, kind)
        if self.newest is not None:
            if public_key is None:
                report.notes.append("Anchors were compared, but not their signatures: no public key was given.")
            elif self.newest.is_signed_by(public_key, verify):
                report.anchored_to = self.newest.number
            else:
                self._break_by_anchor(self.newest, SEAL)
        if report.is_sound:
            report.sentence = f"All {report.events} events are as they were written."
        return report

    def _is_told_lost(self, anchor: Anchor) -> bool:
        return any(first <= anchor.number <= last and anchor.sealed_at <= at for first, last, at, _ in self.lost)

    def _break_by_anchor(self, anchor: Anchor, kind: str) -> None:
        number, report = anchor.number, self.report
        if kind == SEAL:
            sentence = f"The anchor of event {number} ({anchor.sealed_at}) is not signed with the public key given."
        elif kind == REWRITTEN:
            sentence = (
                f"Event {number} is not the one that was anchored at {anchor.sealed_at}: the trail was rewritten, or "
                "the database was restored from a backup and written to since."
            )
        else:
            last = self.before.number
            number = last + 1
            sentence = (
                f"The trail ends at event {last}, but event {anchor.number} was anchored at {anchor.sealed_at}: "
                f"events {number} to {anchor.number} were cut off, or the database was restored from a backup."
            )
        report.break_at(number, kind, sentence)

    def _compare_head(self, number: int, hash_: str) -> None:
        last = self.before.number
        if last < number:
            sentence = (
                f"The chain ends at event {last}, but its head remembers event {number}: "
                f"events {last + 1} to {number} were cut off."
            )
            self.report.break_at(last + 1, TRUNCATED, sentence)
        elif self.before.hash != hash_:
            sentence = f"Event {last} is not the one that the head of the chain remembers by its hash."
            self.report.break_at(last, HEAD, sentence)


def _nearby(number: int) -> Iterator[int]:
    for distance in range(1, 5000):
        yield number + distance
        if distance < number:
            yield number - distance


def tell(event: Event) -> str:
    """Name an event for a person: its number, action and time."""
    return f"Event {event['number']} ({event['action']}, {event['at'][:19].replace('T', ' ')} UTC)"


# --- Ed25519, RFC 8032 section 5.1: verification only --------------------------------------------------------------
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_Point = tuple[int, int, int, int]  # extended homogeneous coordinates: x = X/Z, y = Y/Z, x·y = T/Z


def _add(p: _Point, q: _Point) -> _Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * p[3] * q[3] * _D % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _decompress(data: bytes) -> _Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    x2 = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(x2, (_P + 3) // 8, _P)
    if (x * x - x2) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - x2) % _P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


_G = _decompress(bytes.fromhex("58" + "66" * 31)) or (0, 0, 0, 0)  # the base point: y = 4/5, x even


def verify_ed25519(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` (64 bytes) of `message` was made with the private half of `public_key` (32 bytes)."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a, r = _decompress(public_key), _decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= _L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % _L
    left, right = _times(s, _G), _add(r, _times(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % _P == 0 and (left[1] * right[2] - right[1] * left[2]) % _P == 0


# --- what lies in files --------------------------------------------------------------------------------------------
def parse_ring(text: str) -> dict[int, bytes]:
    """The secret keys by version, from lines `version hex`. Raises ValueError with the line."""
    ring = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        version, _, digits = line.strip().partition(" ")
        try:
            key = bytes.fromhex(digits)
        except ValueError:
            key = b""
        if not version.isdecimal() or int(version) < 1 or len(key) < 32:
            raise ValueError(f"line {number} is no key: write the version, a blank and at least 64 hex digits")
        ring[int(version)] = key
    if not ring:
        raise ValueError("it holds no key")
    return ring


def parse_public_key(text: str) -> bytes:
    """A public key from 64 hex digits or from PEM. Raises ValueError."""
    if "BEGIN PUBLIC KEY" in text:
        der = base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line))
        if len(der) != 44 or der[:12] != bytes.fromhex("302a300506032b6570032100"):  # RFC 8410
            raise ValueError("it is no Ed25519 public key")
        return der[12:]
    key = bytes.fromhex(text.strip())
    if len(key) != 32:
        raise ValueError("an Ed25519 public key has 64 hex digits")
    return key


# --- signed documents ----------------------------------------------------------------------------------------------
class Unsound(ValueError):
    """A document that is not as it was signed; the text says how that shows."""


def document_statement(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document that are signed: all of it but the signature. No anchor begins like it."""
    return b"fabricui document\n" + canonical({name: document[name] for name in document if name != "signature"})


def read_document(data: bytes, public_key: bytes, verify: Verify) -> dict[str, Any]:
    """The signed document in `data`, a file's bytes. Raises Unsound when a byte of it is not as it was signed.

    There is one way to write a document down: canonical JSON and the end of the line. Any other is refused, so that
    no byte can be changed without being seen, not even a blank.
    """
    try:
        document: dict[str, Any] = json.loads(data.decode())
        key, signature = str(document["key"]), bytes.fromhex(document["signature"])
        # The signature covers all but itself; of its own digits there is one way to write them too.
        is_plain = canonical({**document, "signature": signature.hex()}) + b"\n" == data
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unsound("This is no whole signed document: it was cut or altered, or it is something else.") from None
    if not is_plain or document.get("fabricui_document") != 1:
        raise Unsound("This document is not written as it was signed: it was altered.")
    if key != fingerprint(public_key):
        raise Unsound(f"This document names the key {key}, and the given key is {fingerprint(public_key)}.")
    if not verify(public_key, document_statement(document), signature):
        raise Unsound("The signature does not fit: the document was altered, or signed with another key.")
    return document


def _check_document(path: Path, public_key: bytes | None, as_json: bool) -> int:
    if public_key is None:
        raise ValueError("a document is checked with --public-key")
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    try:
        document = read_document(data, public_key, verify_ed25519)
        told = f"The document is as it was signed at {document['signed_at']} with the key {document['key']}."
    except Unsound as error:
        document, told = None, str(error)
    if as_json:
        print(json.dumps({"sound": document is not None, "sentence": told, "sha256": digest}))
    else:
        print(told, f"SHA-256 of the file: {digest}", sep="\n")
    return 1 if document is None else 0


def _events_of(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8") as lines:
        next(lines, "")
        for number, line in enumerate(lines, 2):
            try:
                event = json.loads(line)
                is_text = all(type(event[name]) is str for name in (*_TEXTS, "hash", "mac"))
                if not (is_text and all(type(value) is int for value in _numbers_of(event)) and {*_JSON} <= {*event}):
                    raise ValueError
            except (ValueError, KeyError, TypeError, RecursionError):
                raise Broken(number - 1, UNREADABLE, f"Line {number} of {path.name} is no event.") from None
            yield event


def verify_export(
    path: Path, *, anchors: Sequence[Anchor] = (), public_key: bytes | None = None, ring: Mapping[int, bytes] | None
) -> Report:
    """Check an exported trail. Raises ValueError when the file is none."""
    with path.open(encoding="utf-8") as lines:
        header, first = next(lines, ""), next(lines, "")
    try:
        about = json.loads(header)
        begin, head = int(about["from"]), (int(about["head"]["number"]), str(about["head"]["hash"]))
        standing = Standing(begin - 1, GENESIS if begin == 1 or not first else str(json.loads(first)["previous_hash"]))
        lost = [(int(one["from"]), int(one["to"]), str(one["told_at"]), int(one["in"])) for one in about["lost"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no exported trail: its first line does not say what it holds") from error
    walk = Walk(
        lambda: _events_of(path), standing=standing, ring=ring, anchors=[a for a in anchors if a.number >= begin]
    )
    walk.lost += lost
    walk.run()
    report = walk.conclude(head=head, public_key=public_key, verify=verify_ed25519)
    if begin > 1:
        report.notes.append(f"The export begins at event {begin}; what came before is not in it.")
    if ring is None:
        report.notes.append("The codes were not checked: the secret keys were not given.")
    return report


def main(argv: Sequence[str]) -> int:
    """Check one export; return 0 when it is sound, 1 when it is not, 2 when it cannot be read."""
    parser = argparse.ArgumentParser(description="Verify an exported audit trail of FabricUI, offline.")
    parser.add_argument("export", type=Path, help="what `./run manage audit verify --export` wrote, or a document")
    parser.add_argument("--document", action="store_true", help="the file is a signed document: a tenant's evidence")
    parser.add_argument("--anchors", type=Path, action="append", default=[], help="anchor file, or a syslog file")
    parser.add_argument("--public-key", type=Path, help="64 hex digits or PEM, by `./run manage audit public-key`")
    parser.add_argument("--keys", type=Path, help="the secret keys, if the codes are to be checked too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(argv)
    try:
        public_key = parse_public_key(given.public_key.read_text()) if given.public_key else None
        if given.document:
            return _check_document(given.export, public_key, given.json)
        ring = parse_ring(given.keys.read_text()) if given.keys else None
        anchors = [anchor for path in given.anchors for anchor in anchors_in(path.read_text(errors="replace"))]
        report = verify_export(given.export, anchors=anchors, public_key=public_key, ring=ring)
    except (OSError, ValueError) as error:
        print(f"Nothing was verified: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(to_json(report)))
    else:
        print(report.sentence, *report.notes, sep="\n")
        if report.anchored_to:
            print(f"A signed anchor confirms the events up to {report.anchored_to}.")
        elif not given.anchors:
            print("No anchor was given: that nothing was cut off or rewritten as a whole is not shown.")
    return 0 if report.is_sound else 1


def to_json(report: Report) -> dict[str, Any]:
    """A report for a program."""
    names = ("events", "kind", "broken_at", "sentence", "notes", "anchored_to")
    return {"sound": report.is_sound, "head": report.last_hash, **{name: getattr(report, name) for name in names}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

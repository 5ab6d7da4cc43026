"""Errors that a model of OpenSM's parser could have, each put into ours by replacing one of its rules."""

from subnet.opensm_reading import cnumbers, headers, memory, parser, placement, reading, tokens
from subnet.opensm_reading.partitions import Partitions
from subnet.opensm_reading.placement import Members, Placed


def _whole_keywords(patch):
    honest = tokens.understand

    def understand(token):
        member = honest(token)
        if "keyword-prefix" in member.oddities:
            return member._replace(kind=tokens.BAD)
        return member

    patch.setattr(parser, "understand", understand)


def _no_octal(patch):
    honest = cnumbers.strtoul

    def strtoul(text):
        stripped = text.lstrip(b"0")
        if stripped != text and stripped[:1].isdigit():
            number, end = honest(stripped)
            return number, end + len(text) - len(stripped)
        return honest(text)

    patch.setattr(tokens, "strtoul", strtoul)
    patch.setattr(headers, "strtoul", strtoul)


def _wide_keys_are_bad(patch):
    honest = headers._identify

    def identify(name, identifier, oddities):
        kept, number, is_bad = honest(name, identifier, oddities)
        return kept, number, is_bad or any(oddity.rule == "pkey-truncated" for oddity in oddities)

    patch.setattr(headers, "_identify", identify)


def _long_lines_are_one(patch):
    patch.setattr(parser, "LONGEST_READ", 1 << 20)


def _one_byte_more_a_line(patch):
    patch.setattr(parser, "LONGEST_READ", 4095)


def _unknown_word_is_full(patch):
    honest = tokens._membership

    def membership(value, oddities):
        said = honest(value, oddities)
        return tokens.FULL if "membership-unknown" in oddities else said

    patch.setattr(tokens, "_membership", membership)


def _no_default_membership(patch):
    patch.setattr(headers, "_defmember", lambda value: None)


def _numbers_from_the_file(patch):
    """Auto-numbering that hands out a key which an earlier statement claimed."""

    def generate(self):
        self._counter += 1
        return self._counter

    patch.setattr(Partitions, "_generate", generate)


def _keys_in_order(patch):
    patch.setattr("subnet.opensm_reading.partitions.swapped", lambda key: key)


def _no_index0(patch):
    patch.setattr(Members, "index0_keys", lambda self, states: {})


def _first_wins(patch):
    def latest(self, port, named, scopes, *, is_default):
        number = port.guid.number
        kinds = (tokens.ALL, placement._OF_TYPE[port.node_type])
        found = [places[key] for places, key in ((named, number), *((scopes, kind) for kind in kinds)) if key in places]
        if number == self._sm_number and tokens.SELF in scopes:
            found.append(scopes[tokens.SELF])
        if found:
            return min(found)
        if is_default:
            return placement._DEFAULT_SELF if number == self._sm_number else placement._DEFAULT_ALL
        return placement._NEVER

    patch.setattr(Members, "_latest", latest)


def _carriage_return_is_blank(patch):
    for module in (tokens, parser, memory):
        patch.setattr(module, "BLANKS", b" \t\n\r")


def _no_left_overs(patch):
    honest = memory.Memory.load

    def load(self, start, length, upto, is_open):
        self._noted.clear()
        self._bytes[:] = bytes(len(self._bytes))
        self.written = len(self._bytes)
        return honest(self, start, length, upto, is_open)

    patch.setattr(memory.Memory, "load", load)


def _members_after_mgid(patch):
    honest = parser.Parser._make_group

    def make_group(self, at, text, address, flags, *, closes):
        honest(self, at, text, address, flags, closes=closes)
        for token in text.split(b",")[1:]:
            if tokens.understand(token).kind != tokens.BAD:
                self._members(token, at)

    patch.setattr(parser.Parser, "_make_group", make_group)


def _tables_without_end(patch):
    honest = placement.place

    def place(entries, *, capacity, **rest) -> Placed:
        return honest(entries, capacity=1 << 15, **rest)

    patch.setattr(reading, "place", place)


def _both_is_always_both(patch):
    honest = Members.__init__

    def init(self, store, fabric, *, allow_both_pkeys):
        honest(self, store, fabric, allow_both_pkeys=True)

    patch.setattr(Members, "__init__", init)


def _file_goes_on_after_an_error(patch):
    """The behaviour up to 3.3.16: what was read before the error counts."""
    honest = parser.Parser.run

    def run(self):
        honest(self)

    patch.setattr(parser.Parser, "run", run)


PLANTED = {
    "keywords match only whole": _whole_keywords,
    "a leading 0 is decimal": _no_octal,
    "a P_Key over 16 bits is an error": _wide_keys_are_bad,
    "a long line is one line": _long_lines_are_one,
    "a line has 4095 bytes": _one_byte_more_a_line,
    "an unknown membership is full": _unknown_word_is_full,
    "defmember is not understood": _no_default_membership,
    "auto-numbering takes claimed keys": _numbers_from_the_file,
    "keys are placed in the order of numbers": _keys_in_order,
    "indx0 is not understood": _no_index0,
    "the first mention of a port wins": _first_wins,
    "CR is a blank": _carriage_return_is_blank,
    "nothing is left over of earlier lines": _no_left_overs,
    "members after an mgid count": _members_after_mgid,
    "a table has room for all": _tables_without_end,
    "both is kept without allow_both_pkeys": _both_is_always_both,
    "what was read before an error counts": _file_goes_on_after_an_error,
}

"""Numbers as the C library reads them for OpenSM: strtoul and strtoull with base 0 on a 64-bit machine."""

import re

MOST = 0xFFFFFFFFFFFFFFFF
# isspace() of the C locale; OpenSM itself only ever skips blank, tab and LF.
C_SPACES = b" \t\n\v\f\r"
_NUMBER = re.compile(rb"[ \t-\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")


def strtoul(text: bytes) -> tuple[int, int]:
    """The number at the start of `text` and how many bytes it takes; (0, 0) when there is none.

    0x is hex, a leading 0 octal; a minus wraps round; what does not fit in 64 bits is all ones.
    """
    match = _NUMBER.match(text)
    if match is None:
        return 0, 0
    sign, hexadecimal, octal, decimal = match.groups()
    if hexadecimal is not None:
        number = int(hexadecimal, 16)
    elif octal is not None:
        number = int(octal, 8)
    else:
        # int() refuses thousands of digits; anything beyond twenty is over the top anyway.
        number = int(decimal) if len(decimal) <= 20 else MOST + 1
    if number > MOST:
        number = MOST
    elif sign == b"-":
        number = -number & MOST
    return number, match.end()

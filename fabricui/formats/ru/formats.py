"""Russian: numbers as in English."""

DECIMAL_SEPARATOR = "."

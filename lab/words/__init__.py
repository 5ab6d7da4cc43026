"""The catalogue of translations: found in the sources, kept in locale/, compiled without gettext's programs."""

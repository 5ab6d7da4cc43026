"""How numbers are written in each language; dates are written by the page's own tags."""

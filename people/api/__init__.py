"""The door of the API: what every resource of every room shares. Who asks, what came in, what goes out, and refusals.

A room's own `api.py` only says which rows there are, how they are written down, and which operation a verb calls.
"""

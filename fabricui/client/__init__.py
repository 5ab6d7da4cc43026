"""The command-line client `fabricui`: moves, plans and rollouts from a shell, by the API alone.

It imports nothing of Django and nothing of the rooms, and needs only Python 3.11 or later: it runs wherever this folder
is (docs/client.md, ADR 53).
"""

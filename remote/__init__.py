"""How a machine is reached: shells and the host verbs of a manager host. No Django, no rules."""

"""A simulated site on one machine: ibsim, two real OpenSM, two real sshd, servers that boot. No product code uses it."""

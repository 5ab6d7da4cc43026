"""A simulated site on one machine: ibsim, two OpenSM, two sshd, servers that boot. No product code uses it."""

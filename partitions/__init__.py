"""What should be: partitions, memberships and staged changes. Never reaches a machine."""

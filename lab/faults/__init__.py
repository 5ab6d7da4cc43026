"""Faults at named moments of a rollout, one pair of step and fault after another on one lab (ADR 0023)."""

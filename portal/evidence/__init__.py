"""What a tenant hands to an auditor: the facts, their signature, and how both are shown (ADR 52)."""

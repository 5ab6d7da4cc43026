"""Who may do what: users, tenants, their roles, tokens and permission predicates."""

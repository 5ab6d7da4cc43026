"""Scheduled transfers between servers: what a KV cache costs to move over RDMA, and that strangers cannot connect."""

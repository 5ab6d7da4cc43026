"""Two guests with real kernels and real verbs (Soft-RoCE), for probes: shows the path, never the speed."""

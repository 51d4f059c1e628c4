"""Workloads and the drivers that carry them out, one module a kind. See `base.Workload` and CONTRIBUTING."""

"""Observers, one module a kind. See `base.Observer` and CONTRIBUTING."""

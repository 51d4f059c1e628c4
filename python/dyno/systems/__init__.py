"""Systems under test, one module a kind. See `base.System` for the interface and CONTRIBUTING for a worked example."""

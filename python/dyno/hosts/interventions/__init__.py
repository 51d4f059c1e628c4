"""What is done to a resource on purpose while a run is driven: one module a kind."""

"""Results on disk: atomic run folders and the tables over them. Knows what is kept, not what it means."""

from dyno.store.results import Results, StoreError, StoreFull, list_results, new_results
from dyno.store.staging import Staged

__all__ = ["Results", "Staged", "StoreError", "StoreFull", "list_results", "new_results"]

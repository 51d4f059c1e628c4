"""Where a system's processes and data live."""

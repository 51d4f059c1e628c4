"""dyno: a dynamometer for data stores."""

__version__ = "0.1.0"

//! TPC-C as work of the driver; what it asks is in its own crate.

//! TPC-C as work of the driver; what it asks is in its own crate.

use std::time::Duration;

use dyno_load::Random;
use dyno_sql::Connection;
use dyno_tpcc::{Config, Kind, Loader, SqlStore, Terminal};

use super::{Check, Findings, Inspection, Plan, Work};
use crate::backend::SqlBackend;
use crate::failure::{Failure, OperationError};
use crate::job::TpccJob;

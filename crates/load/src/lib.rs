//! What is asked of a data store, decided without any: pure generators of keys, values and mixes.
//!
//! Everything here is a function of a seed, so the same job asks the same questions again. A
//! [`Stream`] is one client's sequence of [`Request`]s; the [`KeySpace`] is what the clients share:
//! which keys exist by now.

mod chooser;
mod exponential;
mod key;
mod keyspace;
mod mix;
mod permutation;
mod rng;
mod split;
mod stream;
mod values;
mod ycsb;
mod zipf;

pub use chooser::Chooser;
pub use key::{InsertOrder, KEY_LENGTH, KeyText, write_key};
pub use keyspace::{Driver, InsertSlot, KeySpace};
pub use mix::{Mix, Operation};
pub use permutation::Permutation;
pub use rng::{Random, mix64};
pub use split::share;
pub use stream::{Request, Stream, Workload};
pub use values::{CERTIFIED_LENGTH, certify, fill_printable, is_certified};
pub use zipf::Zipf;

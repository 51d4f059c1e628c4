//! A storage engine whose components can be removed.
//!
//! What Harizopoulos, Abadi, Madden and Stonebraker did to Shore by hand ("OLTP through the looking glass, and what we
//! found there", SIGMOD 2008) is a choice of types here: each component is a trait with a real and an absent form, and
//! [`assembly`] says which form of each makes an engine. The compiler leaves nothing of an absent one.
//!
//! From below to above: [`latch`]es guard what threads share, [`pages`] are pinned and latched pieces of memory with or
//! without a buffer pool and a file below, [`log`] makes changes last, [`locks`] keep transactions apart,
//! [`transactions`] end well or not at all, [`keys`] are compared, the [`catalogue`] knows tables and indexes; [`heap`]
//! and [`btree`] hold records and find them, and [`engine`] is what users call. The [`kernel`] stands
//! beside all of it: what is left when none of it is there.

pub mod assembly;
pub mod btree;
pub mod calls;
pub mod catalogue;
mod chain;
pub mod engine;
mod error;
pub mod heap;
mod ids;
pub mod kernel;
pub mod keys;
pub mod latch;
pub mod locks;
pub mod log;
pub mod pages;
pub mod transactions;

pub use chain::Chain;
pub use error::{Error, Result};
pub use ids::{IndexId, Lsn, PageId, Rid, TableId, TxId};

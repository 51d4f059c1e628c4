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
//!
//! Components are chosen by their types and reached through an engine alone, which knows what each of them takes for granted: that
//! one session is open where latches are absent, and that pages in plain memory are asked for by their addresses. So nobody
//! outside makes one, or has its functions:
//!
//! ```compile_fail,E0624
//! let pages = dyno_glass::pages::Direct::<dyno_glass::latch::NoLatch, 32768>::new();
//! ```
//!
//! ```compile_fail,E0624
//! let log = dyno_glass::log::Wal::<dyno_glass::latch::NoLatch>::in_memory(&Default::default());
//! ```
//!
//! ```compile_fail,E0603
//! use dyno_glass::pages::Pages;
//! ```
//!
//! ```compile_fail,E0599
//! use dyno_glass::assembly::Assembly;
//!
//! fn log_of<A: Assembly>() -> bool {
//!     A::Log::open(None, &Default::default()).is_ok()
//! }
//! ```
//!
//! Nor can components with latches be mixed with components without:
//!
//! ```compile_fail,E0277
//! # use dyno_glass::assembly::Built;
//! # use dyno_glass::calls::NoCalls;
//! # use dyno_glass::catalogue::Resolved;
//! # use dyno_glass::keys::Words;
//! # use dyno_glass::latch::{NoLatch, RwLatch};
//! # use dyno_glass::locks::Granular;
//! # use dyno_glass::log::NoLog;
//! # use dyno_glass::pages::Direct;
//! # use dyno_glass::transactions::Real;
//! use dyno_glass::engine::{Engine, Options};
//!
//! type Mixed = Built<32768, false, RwLatch, Direct<RwLatch, 32768>, NoLog, Granular<RwLatch>, Real<NoLatch>, Words, Resolved, NoCalls>;
//! Engine::<Mixed>::open(None, &Options::default());
//! ```

pub mod assembly;
mod btree;
pub mod calls;
pub mod catalogue;
mod chain;
pub mod engine;
mod error;
mod heap;
mod ids;
pub mod kernel;
pub mod keys;
pub mod latch;
pub mod locks;
pub mod log;
pub mod pages;
pub mod transactions;

pub(crate) use chain::Chain;
pub use error::{Error, Result};
pub use ids::{IndexId, Lsn, PageId, Rid, TableId, TxId};

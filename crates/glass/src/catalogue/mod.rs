//! The catalogue: which tables and indexes there are.
//!
//! The real form looks each up by its name whenever it is used, as an engine does whose tables come and go; without
//! it they are resolved once, when the engine is opened.

/// Who knows tables and indexes.
pub trait Catalogue: Send + Sync + 'static {
    /// Whether anything is looked up when it is used.
    const REAL: bool;
}

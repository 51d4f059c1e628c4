//! Heaps: records in slotted pages.

use std::marker::PhantomData;

use crate::latch::Latch;

/// The records of a table.
pub struct Heap<L: Latch> {
    latch: PhantomData<L>,
}

//! The calls of the engine that the publication counts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Call {
    /// A transaction begins.
    Begin,
    /// A table or an index is looked up in the catalogue.
    Catalogue,
    /// A key is looked up in an index.
    Lookup,
    /// A record's page is pinned, its bytes are visited, and the page is unpinned.
    Pin,
    /// A record is created.
    Create,
    /// A pinned record is changed.
    Update,
    /// A record is deleted.
    Delete,
    /// An entry is put into an index.
    Insert,
    /// An entry is taken out of an index.
    Remove,
    /// The next entries of an index are visited.
    Scan,
    /// A transaction ends well.
    Commit,
    /// A transaction is undone.
    Rollback,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Begin,
        Self::Catalogue,
        Self::Lookup,
        Self::Pin,
        Self::Create,
        Self::Update,
        Self::Delete,
        Self::Insert,
        Self::Remove,
        Self::Scan,
        Self::Commit,
        Self::Rollback,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Catalogue => "catalogue",
            Self::Lookup => "lookup",
            Self::Pin => "pin",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Insert => "insert",
            Self::Remove => "remove",
            Self::Scan => "scan",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
        }
    }
}

/// Who is told of calls: nobody, a counter, or one that reads the machine's counters at their boundaries.
pub trait Calls: Default + Send + 'static {
    /// Whether anybody is told.
    const REAL: bool;

    /// A call begins.
    fn enter(&mut self, call: Call);

    /// It has ended.
    fn leave(&mut self, call: Call);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCalls;

impl Calls for NoCalls {
    const REAL: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Call) {}

    #[inline(always)]
    fn leave(&mut self, _: Call) {}
}

/// How often each was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted([u64; Call::ALL.len()]);

impl Counted {
    /// How often that one was made.
    #[must_use]
    pub const fn of(&self, call: Call) -> u64 {
        self.0[call as usize]
    }
}

impl Calls for Counted {
    const REAL: bool = true;

    fn enter(&mut self, call: Call) {
        self.0[call as usize] += 1;
    }

    fn leave(&mut self, _: Call) {}
}

/// Who reads counters at the boundaries of calls.
pub trait Meter {
    /// A call begins.
    fn enter(&self, call: Call);

    /// It has ended.
    fn leave(&self, call: Call);
}

thread_local! {
    /// Whether there is one: all that a call costs where there is none.
    static METERED: Cell<bool> = const { Cell::new(false) };
    static METER: RefCell<Option<Rc<dyn Meter>>> = const { RefCell::new(None) };
}

/// Tells a meter of all calls that this thread makes from now on, where the assembly keeps their boundaries; or nobody any more.
pub fn meter(meter: Option<Rc<dyn Meter>>) {
    METERED.set(meter.is_some());
    METER.set(meter);
}

/// Tells the meter, if there is one.
#[inline]
pub(crate) fn metered(tell: impl FnOnce(&dyn Meter)) {
    if METERED.get() {
        METER.with_borrow(|meter| {
            if let Some(meter) = meter {
                tell(meter.as_ref());
            }
        });
    }
}

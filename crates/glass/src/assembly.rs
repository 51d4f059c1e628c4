//! Which form of each component makes an engine: the one place where it is chosen.
//!
//! Feasible are all choices but those that have no transactions and yet a log or locks, whose records and holders transactions
//! are: 80 of them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use crate::calls::Calls;
use crate::catalogue::{ByName, Catalogue, Resolved};
use crate::keys::{Keys, Typed, Words};
use crate::latch::{Latch, NoLatch, RwLatch};
use crate::locks::{Granular, Locks, NoLocks};
use crate::log::{LogFiles, NoLog, Wal};
use crate::pages::{Direct, Pages, Pool};
use crate::transactions::{NoTransactions, Real, Transactions};
use crate::{Error, Result};

mod outlined;
#[cfg(test)]
mod tests;

use outlined::Outlined;

/// An engine's components.
pub trait Assembly: Sized + Send + Sync + 'static {
    /// Of a page, in bytes.
    const PAGE: usize;

    /// Whether the boundaries of components are kept as calls, for profiles to see.
    const OUT_OF_LINE: bool;

    /// How keys are compared.
    type Keys: Keys;

    /// What guards what threads share.
    type Latch: Latch;

    /// Where pages are.
    type Pages: Pages<Self::Latch>;

    /// Where changes are written down.
    type Log: LogFiles<Self::Latch>;

    /// What keeps transactions apart.
    type Locks: Locks<Self::Latch>;

    /// What a transaction is.
    type Transactions: Transactions<Self::Latch>;

    /// Who knows tables and indexes.
    type Catalogue: Catalogue;

    /// Who is told of calls.
    type Calls: Calls;
}

/// An assembly, of these components.
#[expect(clippy::type_complexity, reason = "it is of each type, and has none")]
pub struct Built<const PAGE: usize, const OUT_OF_LINE: bool, L, P, G, X, T, K, C, N>(
    PhantomData<fn() -> (L, P, G, X, T, K, C, N)>,
);

impl<const PAGE: usize, const OUT_OF_LINE: bool, L, P, G, X, T, K, C, N> Assembly
    for Built<PAGE, OUT_OF_LINE, L, P, G, X, T, K, C, N>
where
    L: Latch,
    P: Pages<L>,
    G: LogFiles<L>,
    X: Locks<L>,
    T: Transactions<L>,
    K: Keys,
    C: Catalogue,
    N: Calls,
{
    const PAGE: usize = PAGE;
    const OUT_OF_LINE: bool = OUT_OF_LINE;
    type Keys = K;
    type Latch = L;
    type Pages = P;
    type Log = G;
    type Locks = X;
    type Transactions = T;
    type Catalogue = C;
    type Calls = N;
}

/// Of a page in a buffer pool, in bytes, as a rule.
const SMALL: usize = 8 * 1024;

/// Of a page in plain memory, in bytes.
const LARGE: usize = 32 * 1024;

/// Which components an assembly has: `keys+log+locks+latches+buffer+transactions+catalogue` where all are there, for which
/// `full` will do, and `none` where none is. With `large-pages` a buffer pool's pages have 32 KiB instead of 8, as those
/// without a pool have; with `outlined` the boundaries of components are kept as calls. These two are there for what is on
/// [`path`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a set of components")]
pub struct Spec {
    /// Typed comparison of keys.
    pub keys: bool,
    /// The write-ahead log.
    pub log: bool,
    /// Two-phase locks.
    pub locks: bool,
    /// Latches.
    pub latches: bool,
    /// The buffer pool.
    pub buffer: bool,
    /// Rollback.
    pub transactions: bool,
    /// Lookup by name at each call.
    pub catalogue: bool,
    /// Whether the buffer pool's pages have 32 KiB instead of 8.
    pub large_pages: bool,
    /// Whether the boundaries of components are kept as calls.
    pub outlined: bool,
}

/// What a spec says of one of its parts.
type Part = fn(&mut Spec) -> &mut bool;

/// All parts by name, in the order in which they are written.
const PARTS: [(&str, Part); 9] = [
    ("keys", |spec| &mut spec.keys),
    ("log", |spec| &mut spec.log),
    ("locks", |spec| &mut spec.locks),
    ("latches", |spec| &mut spec.latches),
    ("buffer", |spec| &mut spec.buffer),
    ("transactions", |spec| &mut spec.transactions),
    ("catalogue", |spec| &mut spec.catalogue),
    ("large-pages", |spec| &mut spec.large_pages),
    ("outlined", |spec| &mut spec.outlined),
];

/// How many of [`PARTS`] are components.
const COMPONENTS: usize = 7;

impl Spec {
    /// With every component.
    pub const FULL: Self = Self {
        keys: true,
        log: true,
        locks: true,
        latches: true,
        buffer: true,
        transactions: true,
        catalogue: true,
        ..Self::NONE
    };

    /// With none.
    pub const NONE: Self = Self {
        keys: false,
        log: false,
        locks: false,
        latches: false,
        buffer: false,
        transactions: false,
        catalogue: false,
        large_pages: false,
        outlined: false,
    };

    /// That many bytes have the pages of such an assembly.
    #[must_use]
    pub const fn page_size(&self) -> usize {
        if self.buffer && !self.large_pages {
            SMALL
        } else {
            LARGE
        }
    }

    /// Whether it can be: [`Error::Refused`] says why not.
    pub fn check(&self) -> Result<()> {
        if !self.transactions && (self.log || self.locks) {
            return Err(Error::Refused(format!(
                "assembly {self}: log and locks are for transactions, without which they cannot be"
            )));
        }
        let outlined = self.outlined;
        let inlined = Self {
            outlined: false,
            ..*self
        };
        if (outlined || self.large_pages) && !path().contains(&inlined) {
            return Err(Error::Refused(format!(
                "assembly {self}: large-pages and outlined are there only where components are removed in the publication's order"
            )));
        }
        Ok(())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut spec = *self;
        let mut names = Vec::with_capacity(PARTS.len());
        for (at, (name, part)) in PARTS.iter().enumerate() {
            if at == COMPONENTS && names.is_empty() {
                names.push("none");
            }
            if *part(&mut spec) {
                names.push(name);
            }
        }
        f.write_str(&names.join("+"))
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut spec = Self::NONE;
        for (at, word) in text.split('+').enumerate() {
            match (at, word) {
                (0, "full") => spec = Self::FULL,
                (0, "none") => {}
                _ => {
                    let Some((_, part)) = PARTS.iter().find(|(name, _)| *name == word) else {
                        let names = PARTS.map(|(name, _)| name).join(", ");
                        return Err(Error::Refused(format!(
                            "assembly {text}: no component is called {word:?}; there are {names}, and full and none to begin with"
                        )));
                    };
                    *part(&mut spec) = true;
                }
            }
        }
        spec.check()?;
        Ok(spec)
    }
}

/// The order of the publication: all, then without comparison of keys by description, without log, without locks, without
/// latches, with larger pages, without the pool. Then ours: without the catalogue, without transactions, which is none.
#[must_use]
pub fn path() -> Vec<Spec> {
    let steps: [Part; 8] = [
        |spec| &mut spec.keys,
        |spec| &mut spec.log,
        |spec| &mut spec.locks,
        |spec| &mut spec.latches,
        |spec| &mut spec.large_pages,
        |spec| &mut spec.buffer,
        |spec| &mut spec.catalogue,
        |spec| &mut spec.transactions,
    ];
    let mut spec = Spec::FULL;
    let mut path = vec![spec];
    for step in steps {
        let part = step(&mut spec);
        *part = !*part;
        // Without a pool pages are large anyway.
        spec.large_pages &= spec.buffer;
        path.push(spec);
    }
    path
}

/// Every choice of components that can be.
#[must_use]
pub fn all() -> Vec<Spec> {
    (0..1_usize << COMPONENTS)
        .map(|bits| {
            let mut spec = Spec::NONE;
            for (at, (_, part)) in PARTS.iter().take(COMPONENTS).enumerate() {
                *part(&mut spec) = bits >> at & 1 == 1;
            }
            spec
        })
        .filter(|spec| spec.check().is_ok())
        .collect()
}

/// Whoever does something with an assembly that is known only when it runs.
pub trait Visitor {
    /// Who is told of calls.
    type Calls: Calls;

    /// What it gives.
    type Output;

    /// Does it.
    fn visit<A: Assembly<Calls = Self::Calls>>(self, spec: Spec) -> Self::Output;
}

/// Whether this build has [`all`] assemblies, and not those of [`path`] alone: each takes the compiler seconds.
pub const HAS_ALL: bool = cfg!(feature = "every-assembly");

/// Calls the visitor with the assembly of that choice. [`Error::Refused`] where there is none, or this build does not have
/// it.
pub fn with<V: Visitor>(spec: Spec, visitor: V) -> Result<V::Output> {
    spec.check()?;
    if spec.outlined {
        Ok(with_outlines(spec, visitor))
    } else if path().contains(&spec) {
        Ok(with_inlines(spec, visitor))
    } else {
        with_any(spec, visitor)
    }
}

#[cfg(not(feature = "every-assembly"))]
fn with_any<V: Visitor>(spec: Spec, _: V) -> Result<V::Output> {
    Err(Error::Refused(format!(
        "assembly {spec}: this build has those alone that are met when components are removed in the publication's order"
    )))
}

#[cfg(feature = "every-assembly")]
fn with_any<V: Visitor>(spec: Spec, visitor: V) -> Result<V::Output> {
    Ok(if spec.latches {
        with_latch::<RwLatch, V>(spec, visitor)
    } else {
        with_latch::<NoLatch, V>(spec, visitor)
    })
}

#[cfg(feature = "every-assembly")]
fn with_latch<L: Latch, V: Visitor>(spec: Spec, visitor: V) -> V::Output {
    if spec.buffer {
        with_pages::<SMALL, L, Pool<L, SMALL>, V>(spec, visitor)
    } else {
        with_pages::<LARGE, L, Direct<L, LARGE>, V>(spec, visitor)
    }
}

#[cfg(feature = "every-assembly")]
fn with_pages<const PAGE: usize, L: Latch, P: Pages<L>, V: Visitor>(
    spec: Spec,
    visitor: V,
) -> V::Output {
    match (spec.log, spec.locks, spec.transactions) {
        (true, true, _) => with_rest::<PAGE, L, P, Wal<L>, Granular<L>, Real<L>, V>(spec, visitor),
        (true, false, _) => with_rest::<PAGE, L, P, Wal<L>, NoLocks, Real<L>, V>(spec, visitor),
        (false, true, _) => with_rest::<PAGE, L, P, NoLog, Granular<L>, Real<L>, V>(spec, visitor),
        (false, false, true) => with_rest::<PAGE, L, P, NoLog, NoLocks, Real<L>, V>(spec, visitor),
        (false, false, false) => {
            with_rest::<PAGE, L, P, NoLog, NoLocks, NoTransactions, V>(spec, visitor)
        }
    }
}

#[cfg(feature = "every-assembly")]
fn with_rest<const PAGE: usize, L, P, G, X, T, V>(spec: Spec, visitor: V) -> V::Output
where
    L: Latch,
    P: Pages<L>,
    G: LogFiles<L>,
    X: Locks<L>,
    T: Transactions<L>,
    V: Visitor,
{
    match (spec.keys, spec.catalogue) {
        (true, true) => {
            visitor.visit::<Built<PAGE, false, L, P, G, X, T, Typed, ByName, V::Calls>>(spec)
        }
        (true, false) => {
            visitor.visit::<Built<PAGE, false, L, P, G, X, T, Typed, Resolved, V::Calls>>(spec)
        }
        (false, true) => {
            visitor.visit::<Built<PAGE, false, L, P, G, X, T, Words, ByName, V::Calls>>(spec)
        }
        (false, false) => {
            visitor.visit::<Built<PAGE, false, L, P, G, X, T, Words, Resolved, V::Calls>>(spec)
        }
    }
}

/// The steps of the path, of components in that form: those with latches, and those of one session without.
fn with_path<const OUT_OF_LINE: bool, L, P, G, X, T, K, C, S, B, R, V>(
    spec: Spec,
    visitor: V,
) -> V::Output
where
    L: Latch,
    P: Pages<L>,
    G: LogFiles<L>,
    X: Locks<L>,
    T: Transactions<L>,
    K: Keys,
    C: Catalogue,
    S: Pages<NoLatch>,
    B: Pages<NoLatch>,
    R: Transactions<NoLatch>,
    V: Visitor,
{
    type Step<const PAGE: usize, const OUT_OF_LINE: bool, L, P, G, X, T, K, C, V> =
        Built<PAGE, OUT_OF_LINE, L, P, G, X, T, K, C, <V as Visitor>::Calls>;
    type Latched<const OUT_OF_LINE: bool, L, P, G, X, T, K, C, V> =
        Step<SMALL, OUT_OF_LINE, L, P, G, X, T, K, C, V>;
    type Alone<const PAGE: usize, const OUT_OF_LINE: bool, P, T, C, V> =
        Step<PAGE, OUT_OF_LINE, NoLatch, P, NoLog, NoLocks, T, Words, C, V>;
    type Memory = Direct<NoLatch, LARGE>;
    match spec {
        Spec { keys: true, .. } => {
            visitor.visit::<Latched<OUT_OF_LINE, L, P, G, X, T, K, C, V>>(spec)
        }
        Spec { log: true, .. } => {
            visitor.visit::<Latched<OUT_OF_LINE, L, P, G, X, T, Words, C, V>>(spec)
        }
        Spec { locks: true, .. } => {
            visitor.visit::<Latched<OUT_OF_LINE, L, P, NoLog, X, T, Words, C, V>>(spec)
        }
        Spec { latches: true, .. } => {
            visitor.visit::<Latched<OUT_OF_LINE, L, P, NoLog, NoLocks, T, Words, C, V>>(spec)
        }
        Spec {
            large_pages: true, ..
        } => visitor.visit::<Alone<LARGE, OUT_OF_LINE, B, R, C, V>>(spec),
        Spec { buffer: true, .. } => visitor.visit::<Alone<SMALL, OUT_OF_LINE, S, R, C, V>>(spec),
        Spec {
            catalogue: true, ..
        } => visitor.visit::<Alone<LARGE, OUT_OF_LINE, Memory, R, C, V>>(spec),
        Spec {
            transactions: true, ..
        } => visitor.visit::<Alone<LARGE, OUT_OF_LINE, Memory, R, Resolved, V>>(spec),
        _ => visitor.visit::<Alone<LARGE, OUT_OF_LINE, Memory, NoTransactions, Resolved, V>>(spec),
    }
}

/// The path, with components as they are.
fn with_inlines<V: Visitor>(spec: Spec, visitor: V) -> V::Output {
    with_path::<
        false,
        RwLatch,
        Pool<RwLatch, SMALL>,
        Wal<RwLatch>,
        Granular<RwLatch>,
        Real<RwLatch>,
        Typed,
        ByName,
        Pool<NoLatch, SMALL>,
        Pool<NoLatch, LARGE>,
        Real<NoLatch>,
        V,
    >(spec, visitor)
}

/// The path, with the boundaries of components as calls, latches too. What is absent is no call.
fn with_outlines<V: Visitor>(spec: Spec, visitor: V) -> V::Output {
    type Latches = Outlined<RwLatch>;
    with_path::<
        true,
        Latches,
        Outlined<Pool<Latches, SMALL>>,
        Outlined<Wal<Latches>>,
        Outlined<Granular<Latches>>,
        Outlined<Real<Latches>>,
        Outlined<Typed>,
        Outlined<ByName>,
        Outlined<Pool<NoLatch, SMALL>>,
        Outlined<Pool<NoLatch, LARGE>>,
        Outlined<Real<NoLatch>>,
        V,
    >(spec, visitor)
}

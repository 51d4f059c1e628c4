//! Ranges are gone through, either way.
//!
//! Forwards one goes from leaf to leaf along the chain. Backwards there is no such way, since leaves are latched from left to right
//! alone: the leaf before is searched for anew from the root, as the one with the greatest key below the bound that the nodes
//! above the last leaf gave. So nodes need no bounds of their own, nor a chain backwards that every split and removal would have
//! to keep, at the price of going down once a leaf. That an entry appears behind the search is prevented by the gate of the
//! entry before, in whose gap it would be.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::gate::{At, Closed, Gate, pass};
use super::node::Node;
use super::{Tree, empty};
use crate::keys::{Keys, LONGEST};
use crate::latch::Latch;
use crate::locks::Lockable;
use crate::log::Log;
use crate::pages::Pages;
use crate::{PageId, Result, Rid};

/// How far a scan has come.
struct Spot {
    bytes: [u8; LONGEST],
    length: usize,
    // Whether the entry with that key is still to be visited.
    included: bool,
}

impl Spot {
    fn new(key: &[u8], included: bool) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..key.len()].copy_from_slice(key);
        Self {
            bytes,
            length: key.len(),
            included,
        }
    }

    fn key(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    fn passed(&mut self, key: &[u8]) {
        self.bytes[..key.len()].copy_from_slice(key);
        self.included = false;
    }
}

/// How far backwards from a spot entries were visited.
enum Back {
    Done,
    ToTheLeft,
    Wait(Closed),
}

impl<K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'_, K, L, P, G> {
    /// Visits the entries with keys from `from` to `to`, both included, in ascending order, until the visitor breaks off. Passes the gate
    /// of each before it is visited; where all were visited also of the one next to the range's end.
    ///
    /// The visitor is called with a leaf latched: it must not use this index nor wait for anything.
    pub fn scan_forwards<H: Gate>(
        &self,
        from: &[u8],
        to: &[u8],
        gate: &mut H,
        mut visit: impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        let mut spot = Spot::new(from, true);
        while let Some(closed) = self.visit_forwards(&mut spot, to, gate, &mut visit)? {
            closed.wait(gate)?;
        }
        Ok(())
    }

    fn visit_forwards<H: Gate>(
        &self,
        spot: &mut Spot,
        to: &[u8],
        gate: &mut H,
        visit: &mut impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<Option<Closed>> {
        let mut leaf = self.leaf(|node| self.child_of(node, spot.key()))?;
        let mut place = match self.find(&leaf, spot.key()) {
            Ok(place) if spot.included => place,
            Ok(place) => place + 1,
            Err(place) => place,
        };
        loop {
            // A leaf is kept until the gate of the next one's first entry is passed: nothing comes in between.
            let mut behind = None;
            if place == leaf.count() {
                if leaf.next() == PageId::NONE {
                    return Ok(pass(gate, Lockable::End(self.index), At::Next));
                }
                let next = self.shared(leaf.next())?;
                if next.count() == 0 {
                    return Err(empty(&next));
                }
                behind = Some(std::mem::replace(&mut leaf, next));
                place = 0;
            }
            let (key, rid) = (leaf.key(place), leaf.rid(place));
            let beyond = K::compare(self.shape, key, to).is_gt();
            let at = if beyond { At::Next } else { At::Entry };
            let closed = pass(gate, Lockable::Record(rid), at);
            drop(behind);
            if closed.is_some() || beyond {
                return Ok(closed);
            }
            if H::REAL {
                spot.passed(key);
            }
            if visit(key, rid).is_break() {
                return Ok(None);
            }
            place += 1;
        }
    }

    /// As [`Self::scan_forwards`], in descending order. The gate of the entry next to the range's end is passed first.
    pub fn scan_backwards<H: Gate>(
        &self,
        from: &[u8],
        to: &[u8],
        gate: &mut H,
        mut visit: impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        while let Some(closed) = self.pass_end(to, gate)? {
            closed.wait(gate)?;
        }
        let mut spot = Spot::new(to, true);
        loop {
            match self.visit_backwards(&mut spot, from, gate, &mut visit)? {
                Back::Done => return Ok(()),
                Back::ToTheLeft => {}
                Back::Wait(closed) => closed.wait(gate)?,
            }
        }
    }

    fn pass_end<H: Gate>(&self, to: &[u8], gate: &mut H) -> Result<Option<Closed>> {
        if !H::REAL {
            return Ok(None);
        }
        let leaf = self.leaf(|node| self.child_of(node, to))?;
        let place = self
            .find(&leaf, to)
            .map_or_else(|place| place, |place| place + 1);
        self.pass_next(&leaf, place, gate)
    }

    fn visit_backwards<H: Gate>(
        &self,
        spot: &mut Spot,
        from: &[u8],
        gate: &mut H,
        visit: &mut impl FnMut(&[u8], Rid) -> ControlFlow<()>,
    ) -> Result<Back> {
        // No key of the leaf is below this.
        let mut least = None;
        let so = if spot.included {
            Ordering::is_le
        } else {
            Ordering::is_lt
        };
        let leaf = self.leaf(|node| {
            let child = self.last(node, spot.key(), so);
            if child > 0 {
                least = Some(Spot::new(node.key(child), false));
            }
            child
        })?;
        let behind = match self.find(&leaf, spot.key()) {
            Ok(place) if spot.included => place + 1,
            Ok(place) | Err(place) => place,
        };
        for place in (0..behind).rev() {
            let (key, rid) = (leaf.key(place), leaf.rid(place));
            if K::compare(self.shape, key, from).is_lt() {
                return Ok(Back::Done);
            }
            if let Some(closed) = pass(gate, Lockable::Record(rid), At::Entry) {
                return Ok(Back::Wait(closed));
            }
            if H::REAL {
                spot.passed(key);
            }
            if visit(key, rid).is_break() {
                return Ok(Back::Done);
            }
        }
        match least {
            Some(least) if K::compare(self.shape, least.key(), from).is_gt() => {
                *spot = least;
                Ok(Back::ToTheLeft)
            }
            _ => Ok(Back::Done),
        }
    }
}

//! Which files of a fileset exist, which of them are in use, and picking one of them.
//!
//! One word a file, changed without locks: whether it exists, whether somebody makes or removes it at the
//! moment, and how many have it open. Beside them the number of existing files of each block of 4096, so that
//! picking one of a few among a million needs no search of a million.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use dyno_load::Random;

const EXISTS: u32 = 1 << 31;
const BUSY: u32 = 1 << 30;
const OPEN: u32 = BUSY - 1;
const BLOCK: usize = 4096;

/// So many guesses before files are counted to find one.
const GUESSES: u32 = 32;

/// What is wanted of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It exists, and is used as others use it too.
    Use,
    /// It exists, nobody has it open, and it is to be removed.
    Remove,
    /// It does not exist, and is to be made.
    Make,
}

/// How one is picked.
#[derive(Debug)]
pub enum Pick<'a> {
    /// Each as likely as any other.
    Random(&'a mut Random),
    /// In the order of their numbers, going on where whoever asks left off.
    Own(&'a mut usize),
    /// In the order of their numbers, going on where anybody left off.
    Rotor,
    /// The first from this number on, round to the one before it.
    From(usize),
}

/// Why none was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum None {
    /// There is none.
    Empty,
    /// There are some, all of them in use.
    InUse,
}

/// The files, or the leaf directories, of a fileset.
#[derive(Debug)]
pub struct Pool {
    states: Box<[AtomicU32]>,
    existing: Box<[AtomicU32]>,
    /// Whether all exist and none is ever made or removed, so that no state changes.
    fixed: bool,
    rotors: [AtomicUsize; 2],
}

impl Pool {
    /// Those of which `exists` is true.
    pub fn new(exists: impl ExactSizeIterator<Item = bool>) -> Self {
        let blocks = exists.len().div_ceil(BLOCK);
        let existing: Box<[AtomicU32]> = (0..blocks).map(|_| AtomicU32::new(0)).collect();
        let states: Box<[AtomicU32]> = exists
            .enumerate()
            .map(|(index, exists)| {
                if exists {
                    existing[index / BLOCK].fetch_add(1, Ordering::Relaxed);
                }
                AtomicU32::new(if exists { EXISTS } else { 0 })
            })
            .collect();
        Self {
            states,
            existing,
            fixed: false,
            rotors: [AtomicUsize::new(0), AtomicUsize::new(0)],
        }
    }

    /// Whether none is made or removed from now on.
    pub fn fix(&mut self, fixed: bool) {
        self.fixed = fixed && self.count_existing() == self.len();
    }

    /// How many there are, existing or not.
    pub const fn len(&self) -> usize {
        self.states.len()
    }

    /// How many exist.
    pub fn count_existing(&self) -> usize {
        let counts = self.existing.iter();
        counts
            .map(|count| count.load(Ordering::Relaxed) as usize)
            .sum()
    }

    /// Picks one and marks it: as open for [`Want::Use`], else as busy.
    #[inline]
    pub fn take(&self, want: Want, pick: Pick) -> Result<usize, None> {
        if self.states.is_empty() {
            return Err(None::Empty);
        }
        match pick {
            Pick::Random(random) => {
                for _ in 0..GUESSES {
                    let index = below(random, self.len());
                    if self.try_take(index, want) {
                        return Ok(index);
                    }
                }
                self.take_counted(want, random)
            }
            Pick::Own(rotor) => {
                let index = self.take_from(want, *rotor)?;
                *rotor = index + 1;
                Ok(index)
            }
            Pick::Rotor => self.take_next(want),
            Pick::From(index) => self.take_from(want, index),
        }
    }

    /// Marks one for removal that only `own` of the calling thread's slots have open.
    pub fn try_remove(&self, index: usize, own: u32) -> bool {
        self.states[index]
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
                (state == EXISTS | own).then_some(state | BUSY)
            })
            .is_ok()
    }

    /// It is open once less.
    #[inline]
    pub fn close(&self, index: usize) {
        if !self.fixed {
            self.states[index].fetch_sub(1, Ordering::Release);
        }
    }

    /// What was marked as to be made is there now, and open once.
    pub fn made(&self, index: usize, open: bool) {
        self.existing[index / BLOCK].fetch_add(1, Ordering::Relaxed);
        self.settle(index, EXISTS, u32::from(open));
    }

    /// What was marked as to be removed is gone.
    pub fn removed(&self, index: usize) {
        self.existing[index / BLOCK].fetch_sub(1, Ordering::Relaxed);
        self.settle(index, 0, 0);
    }

    /// What was marked stays as it was.
    pub fn left(&self, index: usize) {
        self.states[index].fetch_and(!BUSY, Ordering::Release);
    }

    fn settle(&self, index: usize, exists: u32, opened: u32) {
        let settled =
            self.states[index].fetch_update(Ordering::Release, Ordering::Relaxed, |state| {
                Some(exists | ((state & OPEN) + opened))
            });
        debug_assert!(settled.is_ok());
    }

    #[inline]
    fn try_take(&self, index: usize, want: Want) -> bool {
        if self.fixed && want == Want::Use {
            return true;
        }
        let marked = |state: u32| match want {
            Want::Use => (state & (EXISTS | BUSY) == EXISTS).then(|| state + 1),
            Want::Remove => (state == EXISTS).then_some(state | BUSY),
            Want::Make => (state & (EXISTS | BUSY) == 0).then_some(state | BUSY),
        };
        self.states[index]
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, marked)
            .is_ok()
    }

    /// The rarely needed way to one of few: the n-th of those there are.
    fn take_counted(&self, want: Want, random: &mut Random) -> Result<usize, None> {
        let exist = want != Want::Make;
        for _ in 0..GUESSES {
            let total = self.count(exist);
            if total == 0 {
                return Err(None::Empty);
            }
            let mut left = below(random, total);
            let mut block = 0;
            while block < self.existing.len() && left >= self.count_in(block, exist) {
                left -= self.count_in(block, exist);
                block += 1;
            }
            let begin = (block * BLOCK).min(self.len());
            let end = (begin + BLOCK).min(self.len());
            let mut of_block = (begin..end).filter(|&index| self.exists(index) == exist);
            if let Some(index) = of_block.nth(left)
                && self.try_take(index, want)
            {
                return Ok(index);
            }
        }
        self.take_from(want, below(random, self.len()))
    }

    fn take_next(&self, want: Want) -> Result<usize, None> {
        let rotor = &self.rotors[usize::from(want == Want::Make)];
        if self.fixed {
            return Ok(rotor.fetch_add(1, Ordering::Relaxed) % self.len());
        }
        let index = self.take_from(want, rotor.load(Ordering::Relaxed))?;
        rotor.store(index + 1, Ordering::Relaxed);
        Ok(index)
    }

    /// The first from `start` on that can be had, going round once.
    fn take_from(&self, want: Want, start: usize) -> Result<usize, None> {
        let exist = want != Want::Make;
        let (length, start) = (self.len(), start % self.len());
        let mut passed = 0;
        let mut any = false;
        while passed < length {
            let index = (start + passed) % length;
            let block = index / BLOCK;
            if self.count_in(block, exist) == 0 {
                passed += ((block + 1) * BLOCK).min(length) - index;
                continue;
            }
            if self.exists(index) == exist {
                any = true;
                if self.try_take(index, want) {
                    return Ok(index);
                }
            }
            passed += 1;
        }
        Err(if any { None::InUse } else { None::Empty })
    }

    fn exists(&self, index: usize) -> bool {
        self.states[index].load(Ordering::Relaxed) & EXISTS != 0
    }

    fn count(&self, exist: bool) -> usize {
        (0..self.existing.len())
            .map(|block| self.count_in(block, exist))
            .sum()
    }

    fn count_in(&self, block: usize, exist: bool) -> usize {
        let existing = self.existing[block].load(Ordering::Relaxed) as usize;
        if exist {
            existing
        } else {
            (self.len() - block * BLOCK)
                .min(BLOCK)
                .saturating_sub(existing)
        }
    }
}

/// A number in `[0, bound)`.
#[inline]
#[allow(clippy::cast_possible_truncation)] // it is below a usize
fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(exists: &[bool]) -> Pool {
        Pool::new(exists.iter().copied())
    }

    #[test]
    fn each_existing_file_is_picked_as_often_as_any_other() {
        let exists: Vec<bool> = (0..50).map(|index| index % 5 == 0).collect();
        let pool = pool(&exists);
        let mut random = Random::new(3, 0);
        let mut counts = [0_u32; 50];
        for _ in 0..10_000 {
            let index = pool.take(Want::Use, Pick::Random(&mut random)).unwrap();
            counts[index] += 1;
            pool.close(index);
        }
        let chi2: f64 = counts
            .iter()
            .zip(&exists)
            .filter(|(_, exists)| **exists)
            .map(|(count, _)| (f64::from(*count) - 1000.0).powi(2) / 1000.0)
            .sum();
        // The upper 0.1 % point of chi-squared with 9 degrees of freedom.
        assert!(chi2 < 27.877, "{chi2} {counts:?}");
        assert!(
            counts
                .iter()
                .zip(&exists)
                .all(|(count, exists)| *exists == (*count > 0))
        );
    }

    #[test]
    fn a_few_among_a_million_are_found_and_each_as_often() {
        let mut exists = vec![false; 1_000_000];
        let there = [7, 70_000, 700_000, 999_999];
        there.iter().for_each(|&index| exists[index] = true);
        let pool = pool(&exists);
        let mut random = Random::new(1, 0);
        let mut counts = [0; 4];
        for _ in 0..2000 {
            let index = pool.take(Want::Use, Pick::Random(&mut random)).unwrap();
            counts[there.iter().position(|&one| one == index).unwrap()] += 1;
        }
        assert!(
            counts.iter().all(|count| (400..600).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn rotors_go_round_in_the_order_of_numbers_and_skip_what_is_not_there() {
        let pool = pool(&[true, false, true, true]);
        let next = || pool.take(Want::Use, Pick::Rotor).unwrap();
        assert_eq!([next(), next(), next(), next()], [0, 2, 3, 0]);
        let mut own = 2;
        let mut mine = || pool.take(Want::Use, Pick::Own(&mut own)).unwrap();
        assert_eq!([mine(), mine(), mine()], [2, 3, 0]);
        assert_eq!(pool.take(Want::Use, Pick::From(1)), Ok(2));
        assert_eq!(pool.take(Want::Make, Pick::Rotor), Ok(1));
    }

    #[test]
    fn what_is_open_is_not_removed_and_what_is_busy_is_not_picked() {
        let pool = pool(&[true]);
        let mut random = Random::new(1, 0);
        let index = pool.take(Want::Use, Pick::Random(&mut random)).unwrap();
        assert_eq!(
            pool.take(Want::Remove, Pick::Random(&mut random)),
            Err(None::InUse)
        );
        assert!(!pool.try_remove(index, 0));
        pool.close(index);
        assert_eq!(pool.take(Want::Remove, Pick::Random(&mut random)), Ok(0));
        assert_eq!(
            pool.take(Want::Use, Pick::Random(&mut random)),
            Err(None::InUse)
        );
        pool.removed(index);
        assert_eq!(
            pool.take(Want::Use, Pick::Random(&mut random)),
            Err(None::Empty)
        );
        assert_eq!(pool.take(Want::Make, Pick::Random(&mut random)), Ok(0));
        pool.made(index, true);
        assert!(pool.try_remove(index, 1), "only its own thread has it open");
        pool.removed(index);
        pool.close(index);
        assert_eq!(pool.count_existing(), 0);
    }

    #[test]
    fn threads_never_make_or_remove_the_same_file_twice() {
        let pool = Pool::new((0..10_000).map(|index| index % 2 == 0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut random = Random::new(9, thread);
                    for _ in 0..20_000 {
                        if random.below(2) == 0 {
                            if let Ok(index) = pool.take(Want::Make, Pick::Random(&mut random)) {
                                pool.made(index, false);
                            }
                        } else if let Ok(index) = pool.take(Want::Remove, Pick::Random(&mut random))
                        {
                            pool.removed(index);
                        }
                    }
                });
            }
        });
        let counted = (0..pool.len()).filter(|&index| pool.exists(index)).count();
        assert_eq!(counted, pool.count_existing());
    }
}

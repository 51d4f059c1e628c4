//! Transactions that are known, in the order in which they began.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Transactions;
use super::undo::UndoList;
use crate::latch::{Guarded, Latch};
use crate::log::Undo;
use crate::{Lsn, TxId};

/// Who is under way.
///
/// Invariants: `active` ascends, up to `newest` at most; all that are below `oldest` have ended, or never were.
#[derive(Default)]
pub struct Real<L> {
    table: Guarded<L, Table>,
    oldest: AtomicU64,
}

#[derive(Default)]
struct Table {
    /// The number of the one that began last.
    newest: u64,
    active: Vec<u64>,
    /// Lists of those that have ended, for those that begin.
    lists: Vec<UndoList>,
}

/// A transaction.
pub struct Tx {
    id: TxId,
    last: Lsn,
    undo: UndoList,
}

impl<L: Latch> Transactions<L> for Real<L> {
    const REAL: bool = true;

    type Tx = Tx;

    fn begin(&self) -> Tx {
        let mut table = self.table.exclusive();
        table.newest += 1;
        let id = table.newest;
        table.active.push(id);
        let undo = table.lists.pop().unwrap_or_default();
        Tx {
            id: TxId(id),
            last: Lsn::NONE,
            undo,
        }
    }

    fn ended(&self, tx: &mut Tx) {
        tx.undo.clear();
        let mut table = self.table.exclusive();
        if let Ok(at) = table.active.binary_search(&tx.id.0) {
            table.active.remove(at);
            table.lists.push(std::mem::take(&mut tx.undo));
        }
        let oldest = table.active.first().copied().unwrap_or(table.newest + 1);
        self.oldest.store(oldest, Ordering::Release);
    }

    #[inline]
    fn oldest(&self) -> TxId {
        TxId(self.oldest.load(Ordering::Acquire))
    }

    fn continue_after(&self, tx: TxId) {
        let mut table = self.table.exclusive();
        table.newest = table.newest.max(tx.0);
        self.oldest.fetch_max(table.newest + 1, Ordering::Release);
    }

    #[inline]
    fn id(tx: &Tx) -> TxId {
        tx.id
    }

    #[inline]
    fn last(tx: &Tx) -> Lsn {
        tx.last
    }

    #[inline]
    fn logged(tx: &mut Tx, lsn: Lsn) {
        tx.last = lsn;
    }

    #[inline]
    fn remember(tx: &mut Tx, lsn: Lsn, undo: Undo<'_>) {
        tx.undo.push(lsn, undo);
    }

    fn undo_next<R>(tx: &mut Tx, with: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R> {
        tx.undo.pop(with)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::latch::{NoLatch, RwLatch};

    fn id(tx: &Tx) -> TxId {
        Real::<NoLatch>::id(tx)
    }

    #[test]
    fn those_that_began_later_have_larger_numbers_and_none_is_0() {
        let all = Real::<NoLatch>::default();
        let (mut first, second) = (all.begin(), all.begin());
        all.ended(&mut first);
        let third = all.begin();
        assert!(TxId(0) < id(&first) && id(&first) < id(&second) && id(&second) < id(&third));
    }

    #[test]
    fn the_oldest_is_the_first_that_has_not_ended_or_the_next_that_begins() {
        let all = Real::<NoLatch>::default();
        assert!(all.oldest() <= TxId(1));
        let (mut first, mut second, mut third) = (all.begin(), all.begin(), all.begin());
        all.ended(&mut second);
        assert_eq!(all.oldest(), id(&first));
        all.ended(&mut first);
        assert_eq!(all.oldest(), id(&third));
        all.ended(&mut third);
        assert_eq!(all.oldest(), id(&all.begin()));
    }

    #[test]
    fn numbers_of_the_log_are_not_given_again() {
        let all = Real::<NoLatch>::default();
        all.continue_after(TxId(100));
        assert_eq!(id(&all.begin()), TxId(101));
    }

    #[test]
    fn one_that_begins_has_nothing_to_undo_and_nothing_in_the_log() {
        let all = Real::<NoLatch>::default();
        let mut first = all.begin();
        Real::<NoLatch>::remember(
            &mut first,
            Lsn(3),
            Undo::HeapDelete(crate::Rid::from_bits(1 << 16)),
        );
        Real::<NoLatch>::logged(&mut first, Lsn(4));
        assert_eq!(Real::<NoLatch>::last(&first), Lsn(4));
        all.ended(&mut first);
        let mut second = all.begin();
        assert_eq!(Real::<NoLatch>::last(&second), Lsn::NONE);
        assert_eq!(Real::<NoLatch>::undo_next(&mut second, |_, _| ()), None);
        assert_eq!(Real::<NoLatch>::undo_next(&mut first, |_, _| ()), None);
    }

    #[test]
    fn the_oldest_only_grows_and_is_never_younger_than_one_under_way() {
        let all = Real::<RwLatch>::default();
        let ended = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mut tx = all.begin();
                        let before = all.oldest();
                        assert!(before <= tx.id);
                        all.ended(&mut tx);
                        assert!(all.oldest() >= before && all.oldest() != tx.id);
                        ended.lock().unwrap().push(tx.id);
                    }
                });
            }
        });
        assert_eq!(all.oldest(), TxId(2001));
        let mut ids = ended.into_inner().unwrap();
        ids.sort_unstable();
        assert!(ids.into_iter().eq((1..=2000).map(TxId)));
    }
}

//! What a transaction would have to undo, newest last.

use crate::log::{Kind, Undo};
use crate::{IndexId, Lsn, Rid};

/// How each change is undone, and apart from that their bytes, one after the other. Both grow as long as the
/// transaction changes things, and are kept for the next one.
#[derive(Default)]
pub(super) struct UndoList {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

/// A change.
struct Entry {
    lsn: Lsn,
    how: How,
    /// Of its bytes, which are the last of those that are there when it is the last entry.
    length: u32,
}

/// As [`Undo`], but for the bytes.
#[derive(Clone, Copy)]
enum How {
    HeapDelete(Rid),
    HeapRestore(Rid),
    HeapUpdate { rid: Rid, offset: u16 },
    HeapReplace { rid: Rid, kind: Kind },
    IndexDelete(IndexId),
    IndexInsert(IndexId),
}

impl UndoList {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "bytes of one page")]
    pub(super) fn push(&mut self, lsn: Lsn, undo: Undo<'_>) {
        let (how, bytes): (How, &[u8]) = match undo {
            Undo::HeapDelete(rid) => (How::HeapDelete(rid), &[]),
            Undo::HeapRestore(rid) => (How::HeapRestore(rid), &[]),
            Undo::HeapUpdate {
                rid,
                offset,
                before,
            } => (How::HeapUpdate { rid, offset }, before),
            Undo::HeapReplace { rid, kind, before } => (How::HeapReplace { rid, kind }, before),
            Undo::IndexDelete { index, entry } => (How::IndexDelete(index), entry),
            Undo::IndexInsert { index, entry } => (How::IndexInsert(index), entry),
        };
        self.bytes.extend_from_slice(bytes);
        let length = bytes.len() as u32;
        self.entries.push(Entry { lsn, how, length });
    }

    /// Takes out the newest.
    pub(super) fn pop<R>(&mut self, with: impl FnOnce(Lsn, Undo<'_>) -> R) -> Option<R> {
        let Entry { lsn, how, length } = self.entries.pop()?;
        let from = self.bytes.len() - length as usize;
        let bytes = &self.bytes[from..];
        let undo = match how {
            How::HeapDelete(rid) => Undo::HeapDelete(rid),
            How::HeapRestore(rid) => Undo::HeapRestore(rid),
            How::HeapUpdate { rid, offset } => Undo::HeapUpdate {
                rid,
                offset,
                before: bytes,
            },
            How::HeapReplace { rid, kind } => Undo::HeapReplace {
                rid,
                kind,
                before: bytes,
            },
            How::IndexDelete(index) => Undo::IndexDelete {
                index,
                entry: bytes,
            },
            How::IndexInsert(index) => Undo::IndexInsert {
                index,
                entry: bytes,
            },
        };
        let result = with(lsn, undo);
        self.bytes.truncate(from);
        Some(result)
    }

    /// Forgets all, and memory that few transactions need.
    pub(super) fn clear(&mut self) {
        const KEPT: usize = 1 << 16;
        self.entries.clear();
        self.bytes.clear();
        self.entries.shrink_to(KEPT / size_of::<Entry>());
        self.bytes.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::PageId;

    /// As [`Undo`], with bytes of its own.
    #[derive(Clone, Debug)]
    struct Owned {
        lsn: u64,
        which: u8,
        place: u64,
        offset: u16,
        bytes: Vec<u8>,
    }

    impl Owned {
        fn lsn(&self) -> Lsn {
            Lsn(self.lsn)
        }

        fn undo(&self) -> Undo<'_> {
            let rid = Rid::new(PageId(self.place), self.offset);
            let index = IndexId(self.offset);
            let (offset, bytes) = (self.offset, self.bytes.as_slice());
            match self.which {
                0 => Undo::HeapDelete(rid),
                1 => Undo::HeapRestore(rid),
                2 => Undo::HeapUpdate {
                    rid,
                    offset,
                    before: bytes,
                },
                3 => Undo::HeapReplace {
                    rid,
                    kind: Kind::Record,
                    before: bytes,
                },
                4 => Undo::HeapReplace {
                    rid,
                    kind: Kind::Stub,
                    before: bytes,
                },
                5 => Undo::HeapReplace {
                    rid,
                    kind: Kind::Moved,
                    before: bytes,
                },
                6 => Undo::IndexDelete {
                    index,
                    entry: bytes,
                },
                _ => Undo::IndexInsert {
                    index,
                    entry: bytes,
                },
            }
        }
    }

    fn owned() -> impl Strategy<Value = Owned> {
        (
            any::<u64>(),
            0u8..8,
            0u64..1 << 48,
            any::<u16>(),
            vec(any::<u8>(), 0..300),
        )
            .prop_map(|(lsn, which, place, offset, bytes)| Owned {
                lsn,
                which,
                place,
                offset,
                bytes,
            })
    }

    /// Keeps one, takes one out, or forgets all.
    #[derive(Clone, Debug)]
    enum Step {
        Push(Owned),
        Pop,
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![6 => owned().prop_map(Step::Push), 3 => Just(Step::Pop), 1 => Just(Step::Clear)]
    }

    proptest! {
        #[test]
        fn what_was_kept_last_is_undone_first(steps in vec(step(), 0..100)) {
            let mut list = UndoList::default();
            let mut model = Vec::new();
            // What is left is undone at the end.
            let end = vec![Step::Pop; steps.len() + 1];
            for step in steps.into_iter().chain(end) {
                match step {
                    Step::Push(owned) => {
                        list.push(owned.lsn(), owned.undo());
                        model.push(owned);
                    }
                    Step::Pop => {
                        let kept = model.pop();
                        let expected = kept.as_ref().map(|owned| (owned.lsn(), owned.undo()));
                        let right = list.pop(|lsn, undo| Some((lsn, undo)) == expected);
                        prop_assert_eq!(right, expected.map(|_| true));
                    }
                    Step::Clear => {
                        list.clear();
                        model.clear();
                    }
                }
            }
        }
    }

    #[test]
    fn memory_is_kept_unless_it_is_much() {
        let mut list = UndoList::default();
        let undo = Undo::HeapUpdate {
            rid: Rid::new(PageId(1), 1),
            offset: 0,
            before: &[7; 100],
        };
        list.push(Lsn(1), undo);
        let first = list.bytes.capacity();
        list.clear();
        assert!(first > 0 && list.bytes.capacity() >= first.min(1 << 16));
        for _ in 0..100_000 {
            list.push(Lsn(1), undo);
        }
        list.clear();
        assert!(list.bytes.capacity() <= 2 << 16 && list.entries.capacity() <= 1 << 12);
    }
}

//! Changes of several nodes at once: drawn up beside the pages, logged as one record, then put in place.

use std::ops::Range;

use super::node::{ENTRIES, HEAD, Node, number};
use super::{Held, Tree};
use crate::keys::Keys;
use crate::latch::Latch;
use crate::log::{Change, Log, Patch};
use crate::pages::{Page, Pages, Writable};
use crate::{Lsn, Result};

/// The bytes of a page's header that say what it is: kind and number. The rest of it is not the tree's.
const IDENTITY: Range<usize> = 4..16;

/// A latched page and what becomes of it.
pub(super) struct Draft<W> {
    page: W,
    // None where nothing is logged: then the page itself is changed at once.
    image: Option<Box<[u8]>>,
}

impl<W: Writable> Draft<W> {
    pub(super) fn of(page: W, logged: bool) -> Self {
        let image = logged.then(|| page.bytes().into());
        Self { page, image }
    }

    /// What it will be.
    pub(super) fn page(&mut self) -> &mut Page {
        match &mut self.image {
            Some(image) => Page::of_mut(image),
            None => &mut self.page,
        }
    }

    pub(super) fn into_page(self) -> W {
        self.page
    }

    /// Which bytes are not what they were. What was behind the last entry does not count as known: it may be something
    /// else when this is done again. So nothing is known of a new page but what it is.
    fn ranges(&self, image: &[u8]) -> [Range<usize>; 3] {
        let (now, end) = (self.page.bytes(), Page::of(image).end());
        let known = end.min(self.page.end());
        let same = beginning(&now[ENTRIES..known], &image[ENTRIES..known]);
        let differing = |range: Range<usize>| {
            let same = now[range.clone()] == image[range.clone()];
            if same { range.end..range.end } else { range }
        };
        [
            differing(IDENTITY),
            differing(HEAD..ENTRIES),
            ENTRIES + same..end,
        ]
    }

    fn patches(&self) -> impl Iterator<Item = Patch<'_>> {
        let of_image = move |image| {
            let ranges = self.ranges(image).into_iter();
            ranges
                .filter(|range| !range.is_empty())
                .map(move |range| Patch {
                    page: self.page.id(),
                    offset: number(range.start),
                    bytes: &image[range],
                })
        };
        self.image.as_deref().into_iter().flat_map(of_image)
    }

    // A page that stays as it was is not in the record, and so not changed by it.
    fn put_in_place(&mut self, lsn: Lsn) {
        if let Some(image) = self.image.take() {
            let ranges = self.ranges(&image);
            if ranges.iter().all(Range::is_empty) {
                return;
            }
            for range in ranges {
                self.page.bytes_mut()[range.clone()].copy_from_slice(&image[range]);
            }
        }
        self.page.changed(lsn);
    }
}

/// How many bytes both begin with: most of a page, so many at a time and then one by one.
fn beginning(a: &[u8], b: &[u8]) -> usize {
    const MANY: usize = 64;
    let alike = |(a, b): &(&[u8], &[u8])| a == b;
    let many = a.chunks_exact(MANY).zip(b.chunks_exact(MANY));
    let same = many.take_while(alike).count() * MANY;
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

impl<'e, K: Keys, L: Latch, P: Pages<L>, G: Log<L>> Tree<'e, K, L, P, G> {
    pub(super) fn draft(page: Held<'e, L, P>) -> Draft<Held<'e, L, P>> {
        Draft::of(page, G::REAL)
    }

    /// Writes down what becomes of the pages, in one record, and makes them so. Where there is no log there are no patches
    /// to be written, but `write` may remember how it is undone.
    pub(super) fn publish(
        drafts: &mut [Draft<Held<'e, L, P>>],
        write: impl FnOnce(Change<'_>) -> Result<Lsn>,
    ) -> Result<()> {
        let patches: Vec<_> = drafts.iter().flat_map(Draft::patches).collect();
        let lsn = write(Change::Write(&patches))?;
        drop(patches);
        for draft in drafts {
            draft.put_in_place(lsn);
        }
        Ok(())
    }
}

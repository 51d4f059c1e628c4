//! How pages reach the file: in batches, and each batch twice.
//!
//! A disk that loses its power writes some of a page's sectors and not others. So a batch is first written and synced
//! beside the file (the double-write area), and then to its pages' places, which are synced before the area is used
//! again. A page that is torn in its place is therefore whole in the area, from which it is repaired when the file is
//! opened; one that is torn in the area has not been touched in its place.
//!
//! The area begins with a page that says how many images follow; each image has its own number and checksum.
//!
//! Invariant: no two batches are under way at the same time. After an error nobody knows what is on disk, so nothing is
//! written any more: the area may hold the only whole copy of a page.
#![expect(clippy::cast_possible_truncation, reason = "of headers")]

use std::sync::Arc;

use crate::pages::disk::Disk;
use crate::pages::layout::{HEADER, Page, PageKind};
use crate::{Error, Lsn, PageId, Result};

/// The most pages of a batch.
pub(super) const BATCH: usize = 64;

const MAGIC: [u8; 8] = *b"glassdbl";
const SIZE_AT: usize = HEADER + 8;
const COUNT_AT: usize = HEADER + 16;

/// Writes batches.
pub(super) struct Writer<const PAGE: usize> {
    area: Arc<dyn Disk>,
    /// The area's first page, then the images.
    images: Vec<u8>,
    /// Which pages they are of, in which frames.
    batch: Vec<(PageId, usize)>,
    /// The first error.
    broken: Option<String>,
}

impl<const PAGE: usize> Writer<PAGE> {
    /// With that area.
    pub fn new(area: Arc<dyn Disk>) -> Self {
        Self {
            area,
            images: vec![0; (1 + BATCH) * PAGE],
            batch: Vec::with_capacity(BATCH),
            broken: None,
        }
    }

    /// Begins a batch.
    pub fn begin(&mut self) -> Result<()> {
        self.batch.clear();
        match &self.broken {
            None => Ok(()),
            Some(error) => Err(Error::Refused(format!(
                "no page is written any more since this: {error}"
            ))),
        }
    }

    /// The batch: pages and their frames.
    pub fn batch(&self) -> &[(PageId, usize)] {
        &self.batch
    }

    /// Adds the image of a page, of which it makes the checksum right.
    pub fn add(&mut self, page: PageId, frame: usize, bytes: &Page) {
        self.batch.push((page, frame));
        let image = &mut self.images[self.batch.len() * PAGE..][..PAGE];
        image.copy_from_slice(bytes.bytes());
        Page::of_mut(image).seal();
    }

    /// Several pages of the area.
    fn images(&self, from: usize, pages: usize) -> &[u8] {
        &self.images[from * PAGE..][..pages * PAGE]
    }

    /// Writes the batch, which is sorted by page, to the area and to its places. `ahead` waits for the log.
    pub fn write(&mut self, data: &dyn Disk, ahead: impl FnOnce(Lsn) -> Result<()>) -> Result<()> {
        let result = self.try_write(data, ahead);
        if let Err(error) = &result {
            self.broken = Some(error.to_string());
        }
        result
    }

    fn try_write(&mut self, data: &dyn Disk, ahead: impl FnOnce(Lsn) -> Result<()>) -> Result<()> {
        let count = self.batch.len();
        let newest = (1..=count)
            .map(|at| Page::of(self.images(at, 1)).lsn())
            .max();
        if let Some(newest) = newest.filter(|lsn| *lsn != Lsn::NONE) {
            ahead(newest)?;
        }
        self.describe();
        self.area
            .write(0, self.images(0, 1 + count))
            .map_err(|error| Error::Io("write to the double-write area", error))?;
        self.area
            .sync()
            .map_err(|error| Error::Io("sync of the double-write area", error))?;
        // Neighbours are written together.
        for run in self.batch.chunk_by(|a, b| a.0.0 + 1 == b.0.0) {
            let at = self.batch.partition_point(|(page, _)| *page < run[0].0);
            data.write(run[0].0.0 * PAGE as u64, self.images(1 + at, run.len()))
                .map_err(|error| Error::Io("write of pages", error))?;
        }
        data.sync()
            .map_err(|error| Error::Io("sync of pages", error))
    }

    /// Makes the area's first page.
    fn describe(&mut self) {
        let count = self.batch.len() as u64;
        let first = Page::of_mut(&mut self.images[..PAGE]);
        first.clear(PageKind::Free, PageId::NONE);
        first.write(HEADER as u16, &MAGIC);
        first.write(SIZE_AT as u16, &(PAGE as u64).to_le_bytes());
        first.write(COUNT_AT as u16, &count.to_le_bytes());
        first.seal();
    }

    /// Restores the pages of the last batch that are torn in their places, and says how many these were. Whoever asks for it
    /// syncs the file before the area is used again.
    pub fn repair(&mut self, data: &dyn Disk) -> Result<usize> {
        let mut image = vec![0; PAGE];
        self.area
            .read(0, &mut image)
            .map_err(|error| Error::Io("read of the double-write area", error))?;
        let first = Page::of(&image);
        let is_of_such_pages = first.is_sealed()
            && first.bytes()[HEADER..SIZE_AT] == MAGIC
            && first.u64_at(SIZE_AT) == PAGE as u64;
        if !is_of_such_pages {
            // It was torn, or never written: no place has been touched since the batch before, which was whole.
            return Ok(0);
        }
        let count = first.u64_at(COUNT_AT);
        let mut place = vec![0; PAGE];
        let mut restored = 0;
        for at in 1..=count {
            self.area
                .read(at * PAGE as u64, &mut image)
                .map_err(|error| Error::Io("read of the double-write area", error))?;
            let copy = Page::of(&image);
            if copy.is_blank() || !copy.is_sealed() {
                continue;
            }
            let offset = copy.id().0 * PAGE as u64;
            data.read(offset, &mut place)
                .map_err(|error| Error::Io("read of a page", error))?;
            if !Page::of(&place).is_of(copy.id()) {
                data.write(offset, &image)
                    .map_err(|error| Error::Io("repair of a page", error))?;
                restored += 1;
            }
        }
        Ok(restored)
    }
}

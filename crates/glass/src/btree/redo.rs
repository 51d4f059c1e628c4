//! Changes of leaves, made again from the log.

use super::node::{Node, VALUE};
use crate::log::Change;
use crate::pages::Page;
use crate::{Error, Result};

/// Does to a leaf what a record says that was done to it: [`Error::Corrupt`] where it does not fit. Whether it has to be done, and
/// the leaf's number in the log afterwards, are the caller's. Bytes written into pages ([`Change::Write`]) are the same
/// for all pages, and not for here.
pub fn redo(page: &mut Page, change: &Change<'_>) -> Result<()> {
    let count = page.count();
    let fits = match change {
        Change::LeafInsert { place, entry, .. } => {
            let place = usize::from(*place);
            let fits = place <= count
                && count < page.most()
                && page.most() <= page.room_for(page.key_length())
                && entry.len() == page.key_length() + VALUE;
            if fits {
                page.insert(place, entry);
            }
            fits
        }
        Change::LeafDelete { place, .. } => {
            let place = usize::from(*place);
            let fits = place < count && page.end() <= page.bytes().len();
            if fits {
                page.remove(place);
            }
            fits
        }
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::Corrupt(
            Some(page.id()),
            format!("a record of the log does not fit a leaf of {count} entries: {change:?}"),
        ))
    }
}

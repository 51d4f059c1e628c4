//! Block devices as filesets: what is on one may be somebody's, so nothing is written to it by a slip.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use dyno_wml::ast::Direction;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::fileset::Plan;
use crate::program::Program;
use crate::sys;

/// A fileset that is a block device.
#[derive(Debug)]
pub struct Device<'a> {
    /// Which of the filesets.
    pub number: usize,
    /// What the workload says of it.
    pub plan: &'a Plan,
    /// Bytes.
    pub size: u64,
    /// Whether some flowop may write to it.
    pub written: bool,
}

impl Device<'_> {
    /// What a reader should know of it.
    pub fn told(&self) -> String {
        let (name, path) = (&self.plan.name, self.plan.path.display());
        let what = if self.written {
            "which is written over, with --allow-device only"
        } else {
            "which is only read"
        };
        format!(
            "fileset {name} is the block device {path} of {} bytes, {what}",
            self.size
        )
    }
}

/// Which of the filesets are block devices.
pub fn devices<'a>(program: &Program, plans: &'a [Plan]) -> Result<Vec<Device<'a>>, String> {
    let mut found = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        if let Some(size) = size_at(plan)? {
            found.push(Device {
                number,
                plan,
                size,
                written: !plan.read_only && may_be_written(program, number),
            });
        }
    }
    Ok(found)
}

fn may_be_written(program: &Program, fileset: usize) -> bool {
    program.threads.iter().any(|thread| {
        thread.operations().into_iter().any(|operation| {
            operation.kind.direction() == Direction::Write
                && thread.filesets_of(operation).contains(&fileset)
        })
    })
}

/// The size of the block device that a single file is, if it is one.
pub fn size_at(plan: &Plan) -> Result<Option<u64>, String> {
    let Ok(status) = rustix::fs::stat(&plan.path) else {
        // A slip in a device's name would else become a folder there, or a file in memory.
        if plan.path.starts_with("/dev") && !plan.path.starts_with("/dev/shm") {
            return Err(format!("{}: there is no such device", plan.path.display()));
        }
        return Ok(None);
    };
    if FileType::from_raw_mode(status.st_mode) != FileType::BlockDevice {
        return Ok(None);
    }
    let shown = plan.path.display();
    if !plan.single {
        return Err(format!(
            "{shown}: is a block device, which only `define file` can be"
        ));
    }
    std::fs::File::open(&plan.path)
        .and_then(|file| sys::device_size(&file))
        .map(Some)
        .map_err(|error| format!("opening the device {shown}: {error}"))
}

/// Keeps everybody else from it for as long as the handle is open: file systems, arrays, other programs that ask.
///
/// The kernel gives it to one handle alone, so that threads open the device without asking.
pub fn claim(path: &CString) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(path.as_c_str(), flags, Mode::empty()).map_err(|error| {
        let shown = path.to_string_lossy();
        let hint = match error {
            Errno::BUSY => "; it is mounted, or used otherwise, and would be written over",
            _ => "",
        };
        format!("opening the device {shown} for itself alone: {error}{hint}")
    })
}

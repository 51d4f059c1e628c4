//! Disks of their own, in mounts that nobody else sees and that go with the process.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Uid};

/// Whether this user may have mounts of its own; says so where the kernel does not let it.
#[must_use]
pub fn may_mount() -> bool {
    let tried = in_mounts("mount -t tmpfs none /mnt")
        .arg("true")
        .stderr(Stdio::null())
        .status();
    let may = tried.is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: this user may not have mounts of its own");
    }
    may
}

/// What runs the program that is added to it, by the user of the test, after `prepare`: shell commands
/// that mount.
#[must_use]
pub fn in_mounts(prepare: &str) -> Command {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    let mut then = String::new();
    if !Uid::effective().is_root() {
        // Only root mounts: one of its own for that, and back for the program.
        command.arg("--map-root-user");
        let (user, group) = (Uid::effective(), Gid::effective());
        then = format!("unshare --map-user={user} --map-group={group} ");
    }
    let script = format!("{prepare} && exec {then}\"$0\" \"$@\"");
    command.args(["sh", "-c", &script]);
    command
}

/// The command where `folder` is a disk of its own, with what it holds and so much room besides.
pub(crate) fn on_disk(command: &Command, folder: &Path, room_mib: u32) -> Command {
    let folder = folder.display();
    let mut inner = in_mounts(&format!(
        "mkdir -p {folder}.disk && held=$(du -s --block-size=1M {folder} | cut -f1) && \
         mount -t tmpfs -o size=$((held + {room_mib}))m none {folder}.disk && \
         cp -a {folder}/. {folder}.disk && mount --bind {folder}.disk {folder}"
    ));
    inner.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        inner.current_dir(folder);
    }
    inner
}

//! Block devices as filesets, on loop devices of the tests' own.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::files::{files, refused, result, text, workload};
use crate::support::Folder;

/// A loop device of 4 MiB that goes when the test ends.
struct Loop {
    path: String,
    folder: Folder,
}

impl Loop {
    /// None, and why, where this user may have none.
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let image = folder.path("image");
        fs::write(&image, vec![7; 4 << 20]).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image)
            .output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            eprintln!("skipped: this user may not have a loop device");
            return None;
        };
        let path = text(&made.stdout).trim().to_owned();
        Some(Self { path, folder })
    }

    /// A workload with one flowop on it; gives its path.
    fn workload(&self, flowop: &str, more: &str) -> String {
        let name = self.path.strip_prefix("/dev/").unwrap();
        let content = format!(
            "set mode quit firstdone
             define file name={name},path=/dev{more}
             define process name=p {{ thread name=t,instances=2 {{
               flowop {flowop} name=x,filesetname={name},fd=1,iosize=4k
               flowop finishoncount name=f,target=x,value=10 }} }}
             run 5"
        );
        workload(&self.folder, "device.f", &content)
    }

    fn untouched(&self) -> bool {
        fs::read(&self.path).unwrap().iter().all(|&byte| byte == 7)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

#[test]
fn a_device_is_written_over_only_where_that_was_allowed() {
    let Some(device) = Loop::new() else { return };
    let path = device.workload("write", "");
    refused(&device.folder, &[&path], 2, "with --allow-device only");
    assert!(device.untouched());
    for words in [["--check"], ["--explain"]] {
        let told = files(&device.folder, &[&[path.as_str()], &words[..]].concat());
        let told = text(&told.stdout);
        let expected = format!("is the block device {} of 4194304 bytes", device.path);
        assert!(told.contains(&expected), "{told}");
    }
    // Two threads of one run share it, which no other program could.
    result(&device.folder, &[&path, "--allow-device"]);
    assert!(!device.untouched());
}

#[test]
fn a_device_that_is_only_read_needs_no_leave_even_where_it_is_in_use() {
    let Some(device) = Loop::new() else { return };
    let claimed = claim(&device.path);
    let path = device.workload("read", "");
    let told = result(&device.folder, &[&path]);
    assert!(told["operations"]["x"]["count"].as_u64().unwrap() >= 10);
    let path = device.workload("write", "");
    let words = [path.as_str(), "--allow-device"];
    refused(&device.folder, &words, 1, "is mounted, or used otherwise");
    assert!(device.untouched());
    drop(claimed);
}

/// What a file system that is mounted has.
fn claim(path: &str) -> fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(nix::libc::O_EXCL);
    options.open(path).unwrap()
}

#[test]
fn a_device_has_to_hold_what_it_is_said_to_and_not_its_folder() {
    let Some(device) = Loop::new() else { return };
    let path = device.workload("write", ",size=5m,prealloc");
    let words = [path.as_str(), "--allow-device"];
    refused(&device.folder, &words, 1, "has 4194304; a smaller size");
    assert!(device.untouched());
    let path = device.workload("write", ",size=4m,prealloc");
    let told = result(&device.folder, &[&path, "--allow-device"]);
    assert_eq!(told["outcome"], json!("ok"));
}

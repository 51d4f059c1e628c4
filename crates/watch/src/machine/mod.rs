//! The machine as a whole, a group of metrics a file.

mod cpu;
mod disk;
mod memory;
mod network;
mod paging;
mod pressure;
mod scheduler;

use std::time::Instant;

use crate::job::{Group, WatchJob};
use crate::proc_file::{Buffer, ProcFile};
use crate::sample::Samples;
use cpu::Cpus;
use disk::Disks;
use memory::Memory;
use network::Network;
use paging::Paging;
use pressure::Pressures;
use scheduler::{Scheduler, read_stat};

/// The groups that are watched. What a kernel lacks is left out of the samples, and named by `absent`.
#[derive(Debug)]
pub struct Machine {
    /// `/proc/stat`, of which three groups read.
    stat: Option<ProcFile>,
    cpu: bool,
    cpus: Cpus,
    scheduler: Option<Scheduler>,
    memory: Option<Memory>,
    paging: Option<Paging>,
    disks: Option<Disks>,
    network: Option<Network>,
    pressure: Option<Pressures>,
    before: Option<Instant>,
}

/// What is not there: its name as a subject of `watch.absent`.
pub type Absent = Vec<String>;

impl Machine {
    /// Opens the files of the job's groups; also gives what is not there.
    pub fn open(job: &WatchJob) -> (Self, Absent) {
        let wants = |group| job.machine && job.wants(group);
        let mut absent = Vec::new();
        let per_cpu = wants(Group::PerCpu);
        let of_stat = wants(Group::Cpu) || per_cpu || wants(Group::Scheduler);
        let machine = Self {
            stat: of_stat
                .then(|| open("/proc/stat", "stat", &mut absent))
                .flatten(),
            cpu: wants(Group::Cpu),
            cpus: Cpus::new(per_cpu),
            scheduler: wants(Group::Scheduler).then(|| Scheduler::open(per_cpu, &mut absent)),
            memory: wants(Group::Memory)
                .then(|| open("/proc/meminfo", "memory", &mut absent).map(Memory::new))
                .flatten(),
            paging: wants(Group::Paging)
                .then(|| open_list("/proc/vmstat", "paging", &mut absent).map(Paging::new))
                .flatten(),
            disks: wants(Group::Disk)
                .then(|| {
                    let file = open_list("/proc/diskstats", "disk", &mut absent)?;
                    Some(Disks::new(file, job.disks.clone()))
                })
                .flatten(),
            network: wants(Group::Network)
                .then(|| Network::open(job.interfaces.clone(), &mut absent)),
            pressure: wants(Group::Pressure).then(|| Pressures::open(&mut absent)),
            before: None,
        };
        (machine, absent)
    }

    /// Devices that the job names and that the machine has not, as last seen.
    pub fn missing_devices(&self) -> Absent {
        let disks = self.disks.iter().flat_map(Disks::missing);
        let interfaces = self.network.iter().flat_map(Network::missing);
        disks
            .map(|name| format!("disk/{name}"))
            .chain(interfaces.map(|name| format!("interface/{name}")))
            .collect()
    }

    /// Adds the machine's samples: gauges always, rates from the second time on.
    pub fn sample(&mut self, now: Instant, buffer: &mut Buffer, samples: &mut Samples) {
        let before = self.before.replace(now);
        // No rates where no time has passed.
        let seconds = before.map_or(0.0, |before| (now - before).as_secs_f64());
        if let Some(Ok(text)) = self.stat.as_ref().map(|file| file.read(buffer)) {
            let stat = read_stat(text);
            self.cpus.sample(text, self.cpu, seconds, samples);
            if let Some(scheduler) = &mut self.scheduler {
                scheduler.sample_stat(&stat, seconds, samples);
            }
        }
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.sample_delays(seconds, buffer, samples);
        }
        if let Some(memory) = &self.memory {
            memory.sample(buffer, samples);
        }
        if let Some(paging) = &mut self.paging {
            paging.sample(seconds, buffer, samples);
        }
        if let Some(pressure) = &mut self.pressure {
            pressure.sample(seconds, buffer, samples);
        }
        if let Some(disks) = &mut self.disks {
            disks.sample(now, buffer, samples);
        }
        if let Some(network) = &mut self.network {
            network.sample(now, buffer, samples);
        }
    }
}

/// Opens a file, or notes that what it tells is absent.
fn open(path: &str, what: &str, absent: &mut Absent) -> Option<ProcFile> {
    noted(ProcFile::open(path), what, absent)
}

/// The same of a file of many records.
fn open_list(path: &str, what: &str, absent: &mut Absent) -> Option<ProcFile> {
    noted(ProcFile::open_list(path), what, absent)
}

/// The same of a file whose records may be long.
fn open_long_list(path: &str, what: &str, absent: &mut Absent) -> Option<ProcFile> {
    noted(ProcFile::open_long_list(path), what, absent)
}

fn noted(file: std::io::Result<ProcFile>, what: &str, absent: &mut Absent) -> Option<ProcFile> {
    if file.is_err() {
        absent.push(what.to_owned());
    }
    file.ok()
}

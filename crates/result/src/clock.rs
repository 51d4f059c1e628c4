//! Times of day, times of a monotonic clock, and CPU time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::figures::Cpu;

/// CPU time of this process since it began; the kernel always knows it.
#[must_use]
pub fn cpu_so_far() -> Cpu {
    getrusage(UsageWho::RUSAGE_SELF).map_or_else(
        |_| Cpu::default(),
        |usage| Cpu {
            user_s: usage.user_time().num_microseconds() as f64 / 1e6,
            system_s: usage.system_time().num_microseconds() as f64 / 1e6,
        },
    )
}

/// Time of day in ns since the epoch.
pub fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, nanoseconds)
}

/// When the clock of the day shows `ns` since the epoch.
#[must_use]
pub fn instant_at(ns: u64) -> Instant {
    let (now, today_ns) = (Instant::now(), now_ns());
    if ns >= today_ns {
        now + Duration::from_nanos(ns - today_ns)
    } else {
        now.checked_sub(Duration::from_nanos(today_ns - ns))
            .unwrap_or(now)
    }
}

/// In ns; what is longer than 584 years counts as that.
#[must_use]
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

//! What threads wait for: the start, the end, posts, being woken. All of it ends at once when the run does.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::thread::futex::{self, Flags, Timespec};

/// Something that happens once, for all to see and to be waited for.
#[derive(Debug, Default)]
pub struct Event(AtomicU32);

impl Event {
    /// Whether it has happened.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// It happens; all who wait for it go on.
    pub fn set(&self) {
        self.0.store(1, Ordering::Release);
        // Waking whoever waits cannot fail.
        let _ = futex::wake(&self.0, Flags::PRIVATE, u32::MAX >> 1);
    }

    /// Waits until it happens.
    pub fn wait(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&self.0, Flags::PRIVATE, 0, None);
        }
    }

    /// Waits until it happens, but no longer than this; whether it has happened.
    pub fn wait_for(&self, duration: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(duration.subsec_nanos()),
        };
        if self.0.load(Ordering::Acquire) == 0 {
            // Woken, timed out or interrupted: the caller looks at its clock again.
            let _ = futex::wait(&self.0, Flags::PRIVATE, 0, Some(&timeout));
        }
        self.is_set()
    }
}

/// What one `semblock` waits at, and `sempost` posts to: a count of posts, and how far the poster may be ahead.
#[derive(Debug)]
pub struct Semaphore {
    state: Mutex<Counts>,
    /// The one that takes waits here.
    posted: Condvar,
    /// Those that post and may not be further ahead wait here.
    taken: Condvar,
    ended: AtomicBool,
}

#[derive(Debug)]
struct Counts {
    posts: u64,
    /// How much more may be posted.
    room: u64,
    /// What the one that takes waits for; 0 where it does not.
    wanted: u64,
    waiting_posters: u32,
}

impl Semaphore {
    /// The poster may be that far ahead.
    pub fn new(high_water: u64) -> Self {
        Self {
            state: Mutex::new(Counts {
                posts: 0,
                room: high_water,
                wanted: 0,
                waiting_posters: 0,
            }),
            posted: Condvar::new(),
            taken: Condvar::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// Takes `value` posts, once they are there; false when the run ended before.
    pub fn take(&self, value: u64) -> bool {
        let mut state = self.state.lock();
        state.room = state.room.saturating_add(value);
        if state.waiting_posters > 0 {
            self.taken.notify_all();
        }
        while state.posts < value {
            if self.ended.load(Ordering::Relaxed) {
                return false;
            }
            state.wanted = value;
            self.posted.wait(&mut state);
        }
        state.wanted = 0;
        state.posts -= value;
        true
    }

    /// Posts `value`; where `blocking`, once there is room for it. False when the run ended before.
    pub fn post(&self, value: u64, blocking: bool) -> bool {
        let mut state = self.state.lock();
        if blocking {
            while state.room < value {
                if self.ended.load(Ordering::Relaxed) {
                    return false;
                }
                state.waiting_posters += 1;
                self.taken.wait(&mut state);
                state.waiting_posters -= 1;
            }
            state.room -= value;
        }
        state.posts = state.posts.saturating_add(value);
        if state.wanted > 0 && state.posts >= state.wanted {
            state.wanted = 0;
            self.posted.notify_all();
        }
        true
    }

    /// The run ends: nobody waits any more.
    pub fn end(&self) {
        let _state = self.state.lock();
        self.ended.store(true, Ordering::Relaxed);
        self.posted.notify_all();
        self.taken.notify_all();
    }
}

/// What one `block` waits at until somebody wakes it; waking where nobody waits is lost, as the language has it.
#[derive(Debug, Default)]
pub struct Sleeper {
    /// How often it was woken, and whether the run has ended.
    state: Mutex<(u64, bool)>,
    woken: Condvar,
}

impl Sleeper {
    /// Waits to be woken; false when the run ended before.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let before = state.0;
        while state.0 == before && !state.1 {
            self.woken.wait(&mut state);
        }
        !state.1
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        self.state.lock().0 += 1;
        self.woken.notify_all();
    }

    /// The run ends.
    pub fn end(&self) {
        self.state.lock().1 = true;
        self.woken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn who_takes_waits_for_as_many_posts_and_who_posts_is_never_further_ahead() {
        let semaphore = Semaphore::new(20);
        let (posted, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let poster = scope.spawn(|| {
                while semaphore.post(1, true) {
                    posted.fetch_add(1, Ordering::Relaxed);
                }
            });
            for _ in 0..50 {
                assert!(semaphore.take(100));
                taken.fetch_add(100, Ordering::Relaxed);
            }
            // 20 ahead of what was taken, and of what the last one asked for.
            while posted.load(Ordering::Relaxed) < 5020 {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            assert_eq!(posted.load(Ordering::Relaxed), 5020);
            semaphore.end();
            poster.join().unwrap();
        });
    }

    #[test]
    fn whoever_waits_is_woken_by_the_end_at_once() {
        let (semaphore, sleeper, event) = (Semaphore::new(0), Sleeper::default(), Event::default());
        let begun = Instant::now();
        thread::scope(|scope| {
            let all = [
                scope.spawn(|| semaphore.take(1)),
                scope.spawn(|| semaphore.post(2, true)),
                scope.spawn(|| sleeper.wait()),
                scope.spawn(|| {
                    while !event.wait_for(Duration::from_secs(60)) {}
                    false
                }),
            ];
            thread::sleep(Duration::from_millis(20));
            semaphore.end();
            sleeper.end();
            event.set();
            for thread in all {
                assert!(!thread.join().unwrap());
            }
        });
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn waking_where_nobody_waits_is_lost() {
        let sleeper = Sleeper::default();
        sleeper.wake();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| sleeper.wait());
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            sleeper.wake();
            assert!(waiting.join().unwrap());
        });
    }
}

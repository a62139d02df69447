//! A job that takes memory at a given pace, for `bench/guard.py`: alone or as many processes, and
//! deaf to SIGTERM if wanted. It keeps account of itself in the file that `$HOG_LOG` names, which is
//! there to read however it was ended.
//!
//! The log is one block of `LOG_BLOCK` bytes for each process, the first process first: pairs of
//! native-endian u64, at the head the pid and how many pairs follow, then for each step the monotonic
//! clock in nanoseconds and the bytes held. It is mapped, so a step costs two stores. A block that is
//! full is not written to any more.
//!
//! It refuses to grow above 2 GB without `--force`, and ends after a minute whatever it was told.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use stageload::core::{Bytes, Span};

/// Names the file to keep account in.
const LOG_ENV: &str = "HOG_LOG";
/// 4096 pairs: the head, and 4095 steps.
const LOG_BLOCK: usize = 64 << 10;
const PAIR: usize = 16;
const MOST: Bytes = Bytes::gib(2);
const LONGEST: Duration = Duration::from_secs(60);
/// Children are started before anybody grows.
const HEAD_START: Duration = Duration::from_millis(200);
const PAGE: usize = 4096;
const WORDS: usize = PAGE / size_of::<u64>();

#[derive(Debug, Parser)]
struct Args {
    /// How fast all processes together grow, per second
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Bytes,

    /// What all growing processes together hold in the end
    #[arg(long, value_name = "SIZE")]
    to: Bytes,

    /// What a process takes at once before it looks at the clock again
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    step: Bytes,

    /// Hold the memory in so many children; this process then only waits for them
    #[arg(long, value_name = "N", default_value = "0")]
    children: u64,

    /// So many of the children grow (default: all of them)
    #[arg(long, value_name = "K")]
    growing: Option<u64>,

    /// What each of the other children holds from the start
    #[arg(long, value_name = "SIZE", default_value = "16M")]
    share: Bytes,

    /// Give everything back when it is reached, and begin again, until --hold is over
    #[arg(long)]
    again: bool,

    /// How long to go on after --to was reached for the first time
    #[arg(long, value_name = "TIME", default_value = "5s")]
    hold: Span,

    /// Do not end on SIGTERM
    #[arg(long)]
    ignore_term: bool,

    /// Grow to more than 2 GB
    #[arg(long)]
    force: bool,
}

fn rate(text: &str) -> Result<Bytes, String> {
    text.trim_end_matches("/s").parse().map_err(|error| format!("{error}"))
}

/// What one process does.
#[derive(Debug, Clone, Copy)]
struct Growth {
    first: Bytes,
    to: Bytes,
    rate: Bytes,
    step: Bytes,
    begins: Duration,
    hold: Duration,
    again: bool,
}

fn main() -> io::Result<()> {
    let args = Args::parse();
    let growing = args.growing.unwrap_or(args.children).min(args.children);
    let shares = Bytes(args.share.0 * (args.children - growing));
    if args.to + shares > MOST && !args.force {
        return Err(io::Error::other("above 2 GB: --force, if this machine can spare it"));
    }
    end_in_time();
    if args.ignore_term {
        ignore_term();
    }
    let log = Log::open(args.children + 1)?;
    let whole = Growth {
        first: Bytes::ZERO,
        to: args.to,
        rate: args.rate,
        step: args.step,
        begins: monotonic() + if args.children > 0 { HEAD_START } else { Duration::ZERO },
        hold: args.hold.0,
        again: args.again,
    };
    if args.children == 0 {
        return grow(whole, &log.block(0));
    }
    let part = |bytes: Bytes| Bytes(bytes.0 / growing.max(1));
    let grower = Growth { to: part(whole.to), rate: part(whole.rate), ..whole };
    let sitter = Growth { first: args.share, to: args.share, ..grower };
    // Those that sit still come first, so that they are there when the others begin.
    let work = |i| if i < args.children - growing { sitter } else { grower };
    log.block(0).begin();
    for i in 0..args.children {
        if fork()? == 0 {
            end_in_time();
            return grow(work(i), &log.block(i + 1));
        }
    }
    wait_for_children();
    Ok(())
}

/// Takes memory by the clock: one that was kept from running catches up.
fn grow(growth: Growth, log: &Block) -> io::Result<()> {
    log.begin();
    let mut held = Region::reserve(growth.to.max(growth.first))?;
    held.take(growth.first);
    log.note(held.taken);
    let (mut begins, mut reached) = (growth.begins, None);
    loop {
        let now = monotonic();
        let is_full = held.taken >= growth.to;
        if is_full {
            reached.get_or_insert(now);
        }
        if reached.is_some_and(|at| now.saturating_sub(at) >= growth.hold) {
            return Ok(());
        }
        if is_full && growth.again {
            held.give_back()?;
            begins = now;
        } else if is_full {
            std::thread::sleep(Duration::from_millis(10));
        } else if let Some(early) = growth.is_early_by(held.taken, now.saturating_sub(begins)) {
            std::thread::sleep(early);
        } else {
            held.take(growth.step);
            log.note(held.taken);
        }
    }
}

impl Growth {
    /// How long until the next step is due; None if it is.
    fn is_early_by(&self, taken: Bytes, since: Duration) -> Option<Duration> {
        let step_ends = (taken + self.step).saturating_sub(self.first).0 as f64;
        let due = Duration::from_secs_f64(step_ends / self.rate.0.max(1) as f64);
        due.checked_sub(since).filter(|early| !early.is_zero())
    }
}

/// Address space that becomes memory as it is taken, in small pages.
struct Region {
    start: *mut u64,
    size: usize,
    taken: Bytes,
    noise: [u64; WORDS],
}

impl Region {
    #[cfg_attr(target_os = "linux", expect(unsafe_code, reason = "std asks for no large pages"))]
    fn reserve(size: Bytes) -> io::Result<Self> {
        let size = (size.0 as usize).next_multiple_of(PAGE).max(PAGE);
        let start = map(size, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)?;
        // SAFETY: the range was mapped a line ago. Refused only where there are no large pages.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(start.cast(), size, libc::MADV_HUGEPAGE);
        }
        Ok(Self { start, size, taken: Bytes::ZERO, noise: noise() })
    }

    /// Writes a page of noise and its number, so that no page is zero, or like another, or worth
    /// compressing.
    #[expect(unsafe_code, reason = "raw memory")]
    fn take(&mut self, bytes: Bytes) {
        let end = (self.taken.0 as usize + bytes.0 as usize).min(self.size) / PAGE * PAGE;
        for at in (self.taken.0 as usize..end).step_by(PAGE) {
            self.noise[0] = at as u64;
            // SAFETY: `end` is at most `size`, and nobody else knows the region.
            unsafe { self.start.add(at / 8).copy_from_nonoverlapping(self.noise.as_ptr(), WORDS) };
        }
        self.taken = Bytes(end as u64);
    }

    #[expect(unsafe_code, reason = "std cannot give pages back")]
    fn give_back(&mut self) -> io::Result<()> {
        // SAFETY: the same range as it was mapped; `start` is not used between the two calls.
        unsafe { libc::munmap(self.start.cast(), self.size) };
        *self = Self::reserve(Bytes(self.size as u64))?;
        Ok(())
    }
}

fn noise() -> [u64; WORDS] {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    std::array::from_fn(|_| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    })
}

/// The file in `$HOG_LOG`, or plain memory that nobody reads.
struct Log(*const AtomicU64);

impl Log {
    fn open(blocks: u64) -> io::Result<Self> {
        let size = blocks as usize * LOG_BLOCK;
        let Some(path) = std::env::var_os(LOG_ENV) else {
            let start = map(size, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)?;
            return Ok(Self(start.cast()));
        };
        let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
        file.set_len(size as u64)?;
        Ok(Self(map(size, libc::MAP_SHARED, file.as_raw_fd())?.cast()))
    }

    #[expect(unsafe_code, reason = "shared memory")]
    fn block(&self, i: u64) -> Block {
        // SAFETY: `open` has mapped as many blocks as there are processes, for good.
        Block(unsafe { self.0.add(i as usize * LOG_BLOCK / size_of::<u64>()) })
    }
}

/// One process's part of the log.
struct Block(*const AtomicU64);

impl Block {
    fn begin(&self) {
        self.word(0).store(u64::from(std::process::id()), Ordering::Relaxed);
    }

    fn note(&self, held: Bytes) {
        let pairs = self.word(1).load(Ordering::Relaxed) as usize;
        if (pairs + 2) * PAIR <= LOG_BLOCK {
            let clock = monotonic().as_nanos() as u64;
            self.word(2 * pairs + 2).store(clock, Ordering::Relaxed);
            self.word(2 * pairs + 3).store(held.0, Ordering::Relaxed);
            self.word(1).store(pairs as u64 + 1, Ordering::Release);
        }
    }

    #[expect(unsafe_code, reason = "shared memory")]
    fn word(&self, i: usize) -> &AtomicU64 {
        assert!(i < LOG_BLOCK / size_of::<u64>());
        // SAFETY: within this block, which is mapped for good and zeroed by the system.
        unsafe { &*self.0.add(i) }
    }
}

#[expect(unsafe_code, reason = "std maps no memory")]
fn map(size: usize, flags: i32, file: i32) -> io::Result<*mut u64> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at an address of the system's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, file, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// The clock that whoever reads the log has as well; `Instant` does not tell its number.
#[expect(unsafe_code, reason = "std keeps the number to itself")]
fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Not inherited by a fork, so each process asks for it.
#[expect(unsafe_code, reason = "std has no alarm")]
fn end_in_time() {
    // SAFETY: alarm takes a number; its signal ends the process.
    unsafe { libc::alarm(LONGEST.as_secs() as u32) };
}

#[expect(unsafe_code, reason = "std does not handle signals")]
fn ignore_term() {
    // SAFETY: SIG_IGN is a valid disposition for SIGTERM.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

#[expect(unsafe_code, reason = "std does not fork")]
fn fork() -> io::Result<i32> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

#[expect(unsafe_code, reason = "std waits only for what it has started")]
fn wait_for_children() {
    // SAFETY: wait takes no status where the pointer is null.
    while unsafe { libc::wait(ptr::null_mut()) } > 0 {}
}

//! One job while it runs: looks, takes in what it says, and has it stopped when the guard's verdict
//! is to stop. Started by `supervisor.rs`, or taken over by `stand_by.rs`; how a job is stopped:
//! `running/stopping.rs`.

mod stopping;

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use stageload_core::{End, Event, EventKind, Guard, Reading, Reason, Record, Verdict, Warning};

use crate::leader::Leader;
use crate::meter::Meter;
use crate::notice::signal_name;
use crate::others::{Grown, Others};
use crate::sys::{self, Terminal};
use crate::tail::Tail;
use crate::thinning::Thinning;
use crate::trace_file::TraceWriter;
use crate::utc::utc_seconds;
use crate::wake::{Wake, Wakes};
use crate::warden::Warden;
use crate::{Job, Notice, Observer, Outcome};

/// Between two looks at who is still there.
const TURN: Duration = Duration::from_millis(20);
/// How long leftovers of an ended job may take to end as well before they are reported.
const LEFTOVERS: Duration = Duration::from_millis(300);
/// How late an event may be taken in: asking for the file's length costs next to nothing, a look
/// does not.
const EVENTS_WAIT: Duration = Duration::from_millis(100);
/// How long the end of a run takes in what was written last.
const LAST_EVENTS: Duration = Duration::from_secs(5);
/// Megabytes of events that are taken in between two looks.
const READS_PER_LOOK: usize = 4;
/// In a dry run a broken rule is told this often.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// One job while it runs.
pub(crate) struct Run<'a> {
    pub(crate) job: &'a Job,
    pub(crate) wakes: &'a Wakes,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) leader: Leader,
    pub(crate) meter: Meter,
    pub(crate) others: Others,
    pub(crate) guard: Guard,
    pub(crate) tail: Tail,
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) thinning: Thinning,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) warden: Option<Warden>,
    /// On the clock that stops in sleep.
    pub(crate) began: Duration,
    pub(crate) last: Reading,
    /// When a dry run last said that it would have stopped the job.
    pub(crate) would_have: Option<Duration>,
}

impl Run<'_> {
    pub(crate) fn guard_to_the_end(&mut self) -> Outcome {
        let outcome = self.watch();
        self.hear_out();
        // The last stage's window ends with the last look, so that one is always in the trace.
        self.thinning.next_counts();
        self.look();
        self.finish(&outcome);
        outcome
    }

    /// The guard is dead, and its job shall not outlive it.
    pub(crate) fn end_orphan(&mut self) -> Outcome {
        self.look();
        self.stop(&"its guard was killed");
        let outcome = Outcome::Interrupted(libc::SIGKILL);
        self.finish(&outcome);
        outcome
    }

    fn watch(&mut self) -> Outcome {
        loop {
            match self.judge() {
                // Nothing comes between this verdict and its signals.
                Verdict::Stop(reason) if !self.job.dry_run => {
                    if let Some(stop) = self.stop_for(reason) {
                        return Outcome::Stopped(Box::new(stop));
                    }
                }
                verdict => self.go_on(&verdict),
            }
            match self.wait_for_look() {
                None | Some(Wake::Pressure) => {}
                Some(Wake::Suspended) => self.suspend(),
                Some(Wake::CtrlZ) => self.stand_still(),
                Some(Wake::Ended) => return self.ended(),
                Some(Wake::Signal(signal)) => {
                    self.stop(&format_args!("got {}", signal_name(signal)));
                    return Outcome::Interrupted(signal);
                }
            }
        }
    }

    /// Until the next look is due, or something calls for one at once: a wake, or an event of the
    /// job, whose time and footprint are those of the look that takes it in.
    fn wait_for_look(&self) -> Option<Wake> {
        let due = sys::now() + self.guard.next_look();
        loop {
            let left = due.saturating_sub(sys::now());
            let wake = self.wakes.wait(left.min(EVENTS_WAIT));
            if wake.is_some() || left <= EVENTS_WAIT || self.tail.has_news() {
                return wake;
            }
        }
    }

    fn go_on(&mut self, verdict: &Verdict) {
        self.show(*verdict != Verdict::Continue);
        match verdict {
            Verdict::Continue => {}
            Verdict::Warn(warning) => self.warn(warning),
            Verdict::Stop(reason) => self.would_stop(reason),
        }
    }

    /// One look, judged and shown.
    fn look(&mut self) -> Verdict {
        let verdict = self.judge();
        self.show(verdict != Verdict::Continue);
        verdict
    }

    /// Takes in what the job said and judges one look.
    fn judge(&mut self) -> Verdict {
        self.hear();
        let now = sys::moment();
        self.last = self.meter.look(self.since_start(now.awake), self.job.policy.limit);
        self.last.utc = utc_seconds();
        self.guard.observe(&self.last, now)
    }

    /// What is done with a look once it has been judged, and where it was bad, acted on.
    fn show(&mut self, is_news: bool) {
        if self.thinning.keeps(&self.last) || is_news {
            self.record(&Record::Sample(self.last.clone()));
        }
        self.observer.sample(&self.last);
        self.complain();
        let meter = &self.meter;
        self.others.remember(meter.machine(), |pid| meter.is_member(pid), sys::now());
        let Some(warden) = &mut self.warden else { return };
        warden.tell(self.meter.members());
        if warden.has_just_died() {
            let what = "the process that takes over if this guard is killed has died";
            self.observer.notice(&Notice::Warning(what.to_owned()));
        }
    }

    /// A job that writes events without end must not keep the guard from looking.
    fn hear(&mut self) {
        for _ in 0..READS_PER_LOOK {
            if !self.hear_some() {
                break;
            }
        }
    }

    /// Takes in what was written last, the line without an end included; leftovers of the job may go
    /// on writing.
    fn hear_out(&mut self) {
        let deadline = sys::now() + LAST_EVENTS;
        while self.hear_some() && sys::now() < deadline {}
        if let Some(event) = self.tail.finish() {
            self.take_in(event);
        }
    }

    /// Whether there is more.
    fn hear_some(&mut self) -> bool {
        let (events, more) = self.tail.read();
        for event in events {
            self.take_in(event);
        }
        more
    }

    /// The job's clock is the guard's; what is outside the run is another clock and means now.
    fn take_in(&mut self, event: Event) {
        let mut event = event.fit_to_show();
        let moment = sys::moment();
        let now = self.since_start(moment.awake);
        let said = event.t.map(|t| rounded(t - self.began.as_secs_f64()));
        event.t = Some(said.filter(|t| (0.0..=now).contains(t)).unwrap_or(now));
        self.guard.hear(&event, moment);
        self.thinning.next_counts();
        self.observer.event(&event);
        self.record(&Record::Event(event));
    }

    fn warn(&mut self, warning: &Warning) {
        let mut words = warning.to_string();
        if warning.blames_others() {
            words.push_str(&named(&self.grown()));
        }
        self.mark(&words);
        self.observer.notice(&Notice::Warning(words));
    }

    fn would_stop(&mut self, reason: &Reason) {
        let now = sys::now();
        if self.would_have.is_some_and(|then| now.saturating_sub(then) < TOLD_EVERY) {
            return;
        }
        self.would_have = Some(now);
        self.mark(&format!("would stop: {reason}"));
        self.observer.notice(&Notice::WouldStop(reason.to_string()));
    }

    fn grown(&self) -> Vec<Grown> {
        self.others.grown_most(self.meter.machine(), |pid| self.meter.is_member(pid))
    }

    /// What the guard itself has to say, in the trace.
    fn mark(&mut self, words: &str) {
        let t = Some(self.since_start(sys::now()));
        let note = Some(format!("guard: {words}"));
        self.record(&Record::Event(Event { t, note, ..Event::new(EventKind::Mark) }));
    }

    /// Ctrl-Z: the whole job stops, not only the group that the terminal reached, and the guard
    /// with it, so that the shell gets its prompt; `fg` and `bg` go on from here.
    fn suspend(&mut self) {
        let Some(terminal) = &self.terminal else { return };
        self.meter.refresh();
        self.meter.signal_all(libc::SIGSTOP, self.leader.group());
        terminal.suspend(self.leader.group());
        self.meter.signal_all(libc::SIGCONT, self.leader.group());
    }

    /// Ctrl-Z where the terminal is not the job's: nothing may go on behind a guard that stands still.
    fn stand_still(&mut self) {
        self.meter.refresh();
        self.meter.signal_all(libc::SIGSTOP, self.leader.group());
        sys::suspend_self();
        self.meter.signal_all(libc::SIGCONT, self.leader.group());
    }

    fn ended(&mut self) -> Outcome {
        let leftovers = self.leftovers();
        if !leftovers.is_empty() {
            self.observer.notice(&Notice::LeftRunning(leftovers));
        }
        match self.leader.wait() {
            Ok(Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => Outcome::Exited(code),
                (None, signal) => Outcome::Signaled(signal.unwrap_or(libc::SIGKILL)),
            },
            Ok(None) => Outcome::Exited(0),
            Err(error) => {
                let what = format!("cannot tell how the command ended: {error}");
                self.observer.notice(&Notice::Warning(what));
                Outcome::Exited(1)
            }
        }
    }

    /// Members that outlive the leader by more than a moment.
    fn leftovers(&mut self) -> Vec<i32> {
        let deadline = sys::now() + LEFTOVERS;
        loop {
            self.meter.refresh();
            // The leader has ended, whatever a meter that cannot look makes of it.
            let leader = self.leader.pid();
            let others = self.meter.members().map(|id| id.pid);
            let alive: Vec<i32> = others.filter(|pid| *pid != leader).collect();
            if alive.is_empty() || sys::now() >= deadline {
                return alive;
            }
            self.wakes.wait(TURN);
        }
    }

    fn finish(&mut self, outcome: &Outcome) {
        let t = Some(self.since_start(sys::now()));
        let exit = matches!(self.leader, Leader::Child { .. }).then(|| outcome.exit_code());
        self.record(&Record::End(End { t, exit, ..outcome.end() }));
        if self.tail.bad_lines > 0 {
            let first = self.tail.first_bad.as_deref().unwrap_or("one without an end");
            let what = format!(
                "{} lines of the job's events were no events; the first is {first}",
                self.tail.bad_lines
            );
            self.observer.notice(&Notice::Warning(what));
        }
        if let Some(trouble) = self.trace.take().and_then(TraceWriter::finish) {
            self.observer.notice(&Notice::Warning(trouble));
        }
    }

    pub(crate) fn record(&mut self, record: &Record) {
        if let Some(trace) = &mut self.trace {
            trace.write(record);
        }
    }

    /// A trace that cannot be written any more is given up, with one warning.
    fn complain(&mut self) {
        if let Some(what) = self.trace.as_ref().and_then(TraceWriter::complaint) {
            self.trace = None;
            self.observer.notice(&Notice::Warning(what));
        }
    }

    fn since_start(&self, now: Duration) -> f64 {
        rounded(now.saturating_sub(self.began).as_secs_f64())
    }
}

/// `; grew most: firefox (pid 12) by 3.10 GB` for a warning.
fn named(grown: &[Grown]) -> String {
    let one = |grown: &Grown| format!("{} (pid {}) by {}", grown.command, grown.pid, grown.by);
    match grown {
        [] => String::new(),
        grown => format!("; grew most: {}", grown.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

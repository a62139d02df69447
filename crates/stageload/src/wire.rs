//! Every type that crosses from one process to another, or to another language: what is kept of a
//! queued job, and what is told of it. As JSON; a reader ignores keys that it does not know.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stageload_core::queue::{Expected, JobId, Lower};
use stageload_core::{Bytes, Grace, Policy, RoomPolicy};

use crate::OnGuardDeath;

/// What a queued job runs and under which rules. Programs get their words one by one: there is no
/// shell anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments.
    #[serde(with = "words")]
    pub command: Vec<OsString>,
    /// The folder it runs in.
    #[serde(with = "word")]
    pub folder: PathBuf,
    /// What it finds in its environment besides what every program needs.
    pub env: BTreeMap<String, String>,
    /// Who queued it, as shown.
    pub who: Option<String>,
    /// Whose turn it takes.
    pub owner: String,
    /// Jobs of one lane run one at a time.
    pub lane: String,
    /// When it may start.
    pub room: RoomPolicy,
    /// When it is stopped.
    pub policy: Policy,
    /// It does not start while a process's command line matches one of these regular expressions.
    pub busy: Vec<String>,
    /// How long it may take to end when it is stopped.
    pub grace: Grace,
    /// What becomes of it if its supervisor is killed.
    pub on_guard_death: OnGuardDeath,
    /// The preset it was made from.
    pub preset: Option<PresetUse>,
    /// Under which its peak and its times are learned: equal for jobs that should take the same.
    pub key: String,
    /// What is declared of its peak, until one was measured.
    pub declared: Option<Expected>,
    /// What may be tried after a kill.
    pub lower: Lower,
    /// It runs in the terminal of whoever queued it, and not without that.
    #[serde(default)]
    pub in_terminal: bool,
}

/// A preset with the values that were chosen for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetUse {
    /// Its name.
    pub name: String,
    /// Every parameter's value.
    pub values: BTreeMap<String, String>,
    /// The input files, absolute.
    #[serde(with = "paths")]
    pub inputs: Vec<PathBuf>,
    /// The files that it will make, absolute.
    #[serde(with = "paths")]
    pub outputs: Vec<PathBuf>,
}

/// Of [`QueueView`]: it grows when a key changes its meaning, not when one is added.
pub const QUEUE_VERSION: u32 = 1;

/// The queue as it is shown. Sizes are bytes, times seconds; what is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    /// [`QUEUE_VERSION`].
    pub version: u32,
    /// Whether an engine runs.
    pub engine: bool,
    /// Why nothing is started, if so.
    pub paused: Option<String>,
    /// Those that are not over: what runs, then what waits in the order in which it will run.
    pub jobs: Vec<JobView>,
    /// Those that are over, the last first.
    pub history: Vec<JobView>,
}

/// A job as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// The name of the state it is in.
    pub state: String,
    /// What it waits for, or why it ended so.
    pub why: Option<String>,
    /// Whether it may have a process.
    pub is_active: bool,
    /// Its place in its lane if it waits, from 1 on.
    pub place: Option<usize>,
    /// Its lane.
    pub lane: String,
    /// Whose turn it takes.
    pub owner: String,
    /// Who queued it.
    pub who: Option<String>,
    /// Higher comes first.
    pub priority: i32,
    /// What it comes after.
    pub after: Vec<JobId>,
    /// In a few words, on one line: the preset and its inputs, or the command.
    pub title: String,
    /// The program and its arguments, as far as they are text.
    pub command: Vec<String>,
    /// The folder it runs in.
    pub folder: String,
    /// The preset it was made from.
    pub preset: Option<String>,
    /// How often it was started.
    pub attempts: u32,
    /// The folder with the trace and the output of the last attempt.
    pub files: Option<String>,
    /// The stage it is in.
    pub stage: Option<String>,
    /// What it holds now.
    pub footprint: Option<Bytes>,
    /// The machine's swap now.
    pub swap_used: Option<Bytes>,
    /// What it is expected to hold at most.
    pub expected_peak: Option<Bytes>,
    /// In which stage.
    pub expected_stage: Option<String>,
    /// What the last attempt held at most.
    pub peak: Option<Bytes>,
    /// By how much swap grew in it, at most.
    pub swap_peak: Option<Bytes>,
    /// How long the last attempt has run. Waiting does not count.
    pub seconds: Option<f64>,
    /// How long it will still run, from at least two runs of its kind.
    pub eta_seconds: Option<f64>,
    /// When it was queued, since 1970.
    pub added_utc: f64,
    /// When it came to its state, since 1970.
    pub changed_utc: f64,
}

/// A word of a command line: text where it is text, else its bytes. File names need not be UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Word {
    fn of(word: &std::ffi::OsStr) -> Self {
        use std::os::unix::ffi::OsStrExt;
        word.to_str().map_or_else(
            || Self::Bytes(word.as_bytes().to_vec()),
            |text| Self::Text(text.to_owned()),
        )
    }

    fn into_os(self) -> OsString {
        use std::os::unix::ffi::OsStringExt;
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

mod word {
    use super::{Path, PathBuf, Word};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Word::of(path.as_os_str()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(Word::deserialize(from)?.into_os().into())
    }
}

mod words {
    use super::{OsString, Word};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(list: &[OsString], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|word| Word::of(word)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Word>::deserialize(from)?.into_iter().map(Word::into_os).collect())
    }
}

mod paths {
    use super::{PathBuf, Word};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(list: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|path| Word::of(path.as_os_str())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Word>::deserialize(from)?.into_iter().map(|word| word.into_os().into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::time::Duration;

    use stageload_core::Percent;

    use super::*;

    #[test]
    fn a_job_reads_back_whatever_its_file_names_are() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
        let budget = Bytes::gib(8);
        let spec = Spec {
            command: vec!["python".into(), "मेश $(touch x).png".into(), odd],
            folder: "/tmp/with space".into(),
            env: BTreeMap::from([("LANG".to_owned(), "C".to_owned())]),
            who: Some("me-1".into()),
            owner: "me".into(),
            lane: "ram".into(),
            room: RoomPolicy {
                wait_free: Percent::default(),
                swap_budget: budget,
                swap_limit: None,
                need: None,
                quiet_for: Duration::from_secs(60),
                start_timeout: Duration::MAX,
            },
            policy: Policy {
                limit: None,
                swap_budget: budget,
                swap_limit: None,
                kill_free: Percent::default(),
                poll: Duration::from_secs(1),
            },
            busy: vec!["ltx".into()],
            grace: Grace::Auto,
            on_guard_death: OnGuardDeath::Stop,
            preset: Some(PresetUse { name: "mesh".into(), ..PresetUse::default() }),
            key: "mesh grid=1024".into(),
            declared: None,
            lower: Lower::Nothing,
            in_terminal: false,
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert!(text.contains("मेश $(touch x).png"), "{text}");
        assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
    }
}

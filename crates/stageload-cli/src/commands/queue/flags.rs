//! What makes a job of a command: the seed's `--who`, `--owner` and `--lane`, and the guard's flags.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::time::Duration;

use stageload::core::queue::{Expected, JobId};
use stageload::store::NewJob;
use stageload::wire::Spec;

use super::job_id;
use super::what::What;
use crate::failure::Failure;
use crate::flags::GuardFlags;

/// Whose job it is and when its turn comes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Queue")]
pub(crate) struct QueueFlags {
    /// Who queues it, as shown; `$STAGELOAD_WHO` if absent
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// Whose turn it takes; `$STAGELOAD_OWNER` if absent, else --who up to its first dash
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Jobs of one lane run one at a time; lanes do not wait for each other
    #[arg(long, value_name = "NAME", default_value = "ram", value_parser = some_name)]
    lane: String,

    /// Higher comes first, whoever owns it
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,

    /// Start only after this job is done (repeatable)
    #[arg(long, value_name = "JOB", value_parser = job_id)]
    after: Vec<JobId>,

    /// Give the job this of the environment (repeatable); names of secrets are left out otherwise
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = assignment)]
    env: Vec<(String, String)>,
}

/// How a job is put into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Here, in this terminal.
    InTerminal,
    /// Behind the scenes; it waits for as long as it takes.
    Behind,
}

/// What is to be run, and how.
pub(crate) struct Wish {
    pub(crate) guard: GuardFlags,
    pub(crate) what: What,
    pub(crate) way: Way,
    /// Whether --start-timeout was given by hand: who waits behind the scenes waits for ever otherwise.
    pub(crate) has_timeout: bool,
}

impl QueueFlags {
    /// The job that these flags make of it.
    pub(crate) fn job(self, wish: Wish) -> Result<NewJob, Failure> {
        let folder = env::current_dir().map_err(|error| {
            Failure::no_input(format!("cannot find the current folder: {error}"))
        })?;
        let Wish { guard, what, way, has_timeout } = wish;
        let given_need = guard.need().map(|peak| Expected { peak, stage: None });
        let job = guard.job(what.command);
        let mut room = job.room;
        if way == Way::Behind && !has_timeout {
            room.start_timeout = Duration::MAX;
        }
        let who = self.who.or_else(|| given("STAGELOAD_WHO"));
        let owner = self.owner.or_else(|| given("STAGELOAD_OWNER"));
        let mut env = kept_environment(env::vars_os());
        env.extend(what.env);
        env.extend(self.env);
        let patterns = job.busy.iter().map(|pattern| pattern.as_str().to_owned());
        let spec = Spec {
            owner: owner.unwrap_or_else(|| owner_of(who.as_deref())),
            command: job.command,
            folder,
            env,
            who,
            lane: self.lane,
            room,
            policy: job.policy,
            busy: patterns.chain(what.busy).collect(),
            grace: job.grace,
            on_guard_death: job.on_guard_death,
            preset: what.preset,
            key: what.key,
            declared: given_need.or(what.declared),
            lower: what.lower,
            in_terminal: way == Way::InTerminal,
        };
        Ok(NewJob { spec, priority: self.priority, after: self.after, hold: None })
    }
}

/// The seed's rule: `ada-laptop` is one of ada's.
fn owner_of(who: Option<&str>) -> String {
    let of_who = who.and_then(|who| who.split('-').next()).filter(|name| !name.is_empty());
    of_who.map(str::to_owned).or_else(|| given("USER")).unwrap_or_else(|| "me".to_owned())
}

fn given(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// What programs find their way by. The queue is on disk and read by others of this user, so that
/// nothing goes into it that looks like a secret.
fn kept_environment(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    all.filter_map(text).filter(|(name, _)| is_kept(name)).collect()
}

fn is_kept(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
    ];
    const FAMILIES: [&str; 15] = [
        "LC_",
        "CONDA_",
        "PYTHON",
        "HF_",
        "HUGGINGFACE_",
        "TRANSFORMERS_",
        "DIFFUSERS_",
        "TORCH",
        "PYTORCH_",
        "CUDA_",
        "OMP_",
        "MKL_",
        "XDG_",
        "DYLD_",
        "MLX_",
    ];
    const SECRETS: [&str; 6] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
    let is_known = NAMES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
    is_known && !SECRETS.iter().any(|secret| name.contains(secret))
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = if let Some((name, value)) = text.split_once('=') {
        (name, value.to_owned())
    } else {
        (text, env::var(text).map_err(|_| format!("{text} is not set here"))?)
    };
    if name.is_empty() || name.contains('\0') || value.contains('\0') {
        return Err("give NAME=VALUE, or the NAME of something that is set".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn some_name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("a lane needs a name".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_need_is_kept_and_secrets_are_not() {
        let all = [
            ("PATH", "/bin"),
            ("HF_HOME", "/data/hf"),
            ("HF_TOKEN", "hf_secret"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "0.0"),
            ("STAGELOAD_JOB", "1-2"),
            ("EDITOR", "vi"),
        ];
        let kept = kept_environment(all.into_iter().map(|(n, v)| (n.into(), v.into())));
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["HF_HOME", "PATH", "PYTORCH_MPS_HIGH_WATERMARK_RATIO"]);
    }

    #[test]
    fn an_owner_is_the_first_part_of_who() {
        assert_eq!(owner_of(Some("ada-laptop-2")), "ada");
        assert_eq!(owner_of(Some("ada")), "ada");
    }

    #[test]
    fn an_assignment_may_have_anything_as_its_value() {
        assert_eq!(assignment("A=b=c $(d)\n").unwrap(), ("A".into(), "b=c $(d)\n".into()));
        assert!(assignment("=x").is_err() && assignment("NO_SUCH_NAME_HERE_8").is_err());
    }
}

//! Finding a program before its job waits for hours.

use std::env;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path, PathBuf};

use super::param::from_home;

/// The worker of the embedded pipeline, which a template names as its first word.
pub(super) const WORKER: &str = "stageload-mesh";
/// Names a worker other than the one beside this program.
const WORKER_ENV: &str = "STAGELOAD_MESH_WORKER";

/// Who knows where programs are.
pub trait Programs {
    /// Where the program is, absolute; none if it is not there.
    fn find(&self, name: &OsStr) -> Option<PathBuf>;
}

/// Looks where the system would: in `$PATH`, or where a name with a slash says. The mesh worker is
/// the one that `$STAGELOAD_MESH_WORKER` names, else the one beside this program.
#[derive(Debug, Clone, Copy, Default)]
pub struct InPath;

impl Programs for InPath {
    fn find(&self, name: &OsStr) -> Option<PathBuf> {
        if name == WORKER {
            if let Some(named) = env::var_os(WORKER_ENV) {
                return executable(Path::new(&named));
            }
            let beside = env::current_exe().ok().map(|own| own.with_file_name(WORKER));
            if let Some(found) = beside.and_then(|path| executable(&path)) {
                return Some(found);
            }
        }
        let name = from_home(Path::new(name));
        if name.as_os_str().as_encoded_bytes().contains(&b'/') {
            return executable(&name);
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).find_map(|folder| executable(&folder.join(&name)))
    }
}

/// Links are left as they are: a virtual environment's Python is one, and what it is a link to does
/// not know the environment.
fn executable(path: &Path) -> Option<PathBuf> {
    let file = path.metadata().ok().filter(Metadata::is_file)?;
    let may_run = file.permissions().mode() & 0o111 != 0;
    may_run.then(|| path::absolute(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_the_system_would() {
        let sh = InPath.find(OsStr::new("sh")).unwrap();
        assert!(sh.is_absolute() && sh.ends_with("sh"), "{}", sh.display());
        assert_eq!(InPath.find(OsStr::new("/bin/sh")).unwrap(), Path::new("/bin/sh"));
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let no_program =
            [OsStr::new("no such program"), plain.as_os_str(), folder.path().as_os_str()];
        for name in no_program {
            assert_eq!(InPath.find(name), None, "{}", name.display());
        }
    }
}

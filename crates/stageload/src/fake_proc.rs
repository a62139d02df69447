//! A written `/proc`, where a test can make anything happen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

/// A `/proc` that a test can write.
pub(crate) struct Proc(tempfile::TempDir);

impl Proc {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn start(&self, pid: i32, parent: i32, group: i32, start: u64) -> &Self {
        let folder = self.path().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(15);
        let stat = format!("{pid} (x) S {parent} {group} {group} {zeros}{start} 0\n");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("status"), "RssAnon:\t1024 kB\n").unwrap();
        fs::write(folder.join("environ"), "").unwrap();
        self
    }

    pub(crate) fn write(&self, pid: i32, file: &str, text: &str) -> &Self {
        fs::write(self.path().join(pid.to_string()).join(file), text).unwrap();
        self
    }

    pub(crate) fn end(&self, pid: i32) -> &Self {
        fs::remove_dir_all(self.path().join(pid.to_string())).unwrap();
        self
    }
}

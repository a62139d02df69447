//! GPU memory that lies in the machine's own: the GTT of AMD's GPUs and the system region of
//! Intel's. It is in no process's resident set: a model of 25 GB shows as 1 GB there. Drivers tell
//! each client's share in `/proc/<pid>/fdinfo` (kernel `Documentation/gpu/drm-usage-stats.rst`).
//! Not here: NVIDIA's driver, which tells nothing there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stageload_core::Bytes;

use super::Machine;
use super::text::{size_in, value};

/// The regions that are system memory, by what amdgpu and i915/xe call them.
const REGIONS: [&str; 3] = ["gtt", "system0", "system"];
/// Which of a process's files are a GPU's is found out anew every so many looks: that takes a look
/// at each of them, and a program opens its GPU once.
const LOOKS_PER_SEARCH: u32 = 10;

/// What processes hold through the GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    /// None on a machine without one, where nothing is looked at.
    proc: Option<PathBuf>,
    looks: u32,
    files: BTreeMap<i32, Vec<PathBuf>>,
    seen: BTreeSet<String>,
}

impl Gpu {
    pub(crate) fn of(machine: &Machine) -> Self {
        let is_there = fs::read_dir(&machine.dri).is_ok_and(|mut files| files.next().is_some());
        let proc = is_there.then(|| machine.proc.clone());
        Self { proc, looks: 0, files: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// From here on every client counts anew, once.
    pub(crate) fn begin_look(&mut self) {
        self.seen.clear();
        if self.looks.is_multiple_of(LOOKS_PER_SEARCH) {
            self.files.clear();
        }
        self.looks = self.looks.wrapping_add(1);
    }

    /// What this process holds and none of those asked for before it in this look: a child that was
    /// forked has its parent's clients, and they hold what they hold once.
    pub(crate) fn held(&mut self, pid: i32) -> Bytes {
        let Some(proc) = &self.proc else { return Bytes::ZERO };
        let search = || files_of(&proc.join(pid.to_string()));
        let files = self.files.entry(pid).or_insert_with(search);
        let clients = files.iter().filter_map(|file| parse_client(&fs::read(file).ok()?));
        clients.filter(|one| self.seen.insert(one.key.clone())).map(|one| one.held).sum()
    }
}

/// The `fdinfo` of each file of the process that is a GPU.
fn files_of(process: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    files
        .filter(|file| fs::read_link(file.path()).is_ok_and(|to| to.starts_with("/dev/dri")))
        .map(|file| process.join("fdinfo").join(file.file_name()))
        .collect()
}

/// One client of one GPU.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Client {
    key: String,
    held: Bytes,
}

/// None for a file that is no GPU's.
pub(super) fn parse_client(text: &[u8]) -> Option<Client> {
    let said = |key: &str| value(text, key).map(String::from_utf8_lossy);
    let id = said("drm-client-id")?;
    let device = said("drm-pdev").or_else(|| said("drm-driver"))?;
    let region = |region: &str| {
        let keys = ["resident", "memory", "total"];
        keys.iter().find_map(|kind| size_in(value(text, &format!("drm-{kind}-{region}"))?))
    };
    let held = REGIONS.iter().filter_map(|name| region(name)).sum();
    Some(Client { key: format!("{device} {id}"), held })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const AMD: &str = "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t12\n\
        drm-pdev:\t0000:c4:00.0\ndrm-memory-vram:\t5120 KiB\ndrm-memory-gtt: \t26214400 KiB\n";

    fn open(process: &Path, files: &[(&str, &str)]) {
        for (number, target) in files {
            fs::create_dir_all(process.join("fd")).unwrap();
            fs::create_dir_all(process.join("fdinfo")).unwrap();
            symlink(target, process.join("fd").join(number)).unwrap();
            fs::write(process.join("fdinfo").join(number), AMD).unwrap();
        }
    }

    fn gpu(proc: &Path) -> Gpu {
        fs::create_dir(proc.join("dri")).unwrap();
        fs::write(proc.join("dri/renderD128"), "").unwrap();
        Gpu::of(&Machine { dri: proc.join("dri"), ..Machine::under(proc) })
    }

    #[test]
    fn a_client_that_two_files_and_a_forked_child_share_is_counted_once() {
        let proc = tempfile::tempdir().unwrap();
        let render = "/dev/dri/renderD128";
        open(&proc.path().join("7"), &[("5", render), ("6", render), ("9", "/tmp/x")]);
        open(&proc.path().join("8"), &[("5", render)]);
        let mut gpu = gpu(proc.path());
        for _ in 0..2 {
            gpu.begin_look();
            assert_eq!(gpu.held(7), Bytes::gib(25));
            assert_eq!(gpu.held(8), Bytes::ZERO);
        }
    }

    #[test]
    fn without_a_gpu_no_file_is_looked_at() {
        let proc = tempfile::tempdir().unwrap();
        open(&proc.path().join("7"), &[("5", "/dev/dri/renderD128")]);
        assert_eq!(Gpu::of(&Machine::under(proc.path())).held(7), Bytes::ZERO);
    }

    #[test]
    fn memory_of_the_card_itself_is_not_the_machines() {
        let text = "drm-driver: xe\ndrm-client-id: 3\ndrm-pdev: 0000:00:02.0\n\
            drm-total-vram0: 900 MiB\ndrm-total-system: 64 MiB\ndrm-resident-system: 48 MiB\n";
        assert_eq!(parse_client(text.as_bytes()).unwrap().held, Bytes::mib(48));
        assert_eq!(parse_client(b"pos: 0\nflags: 02\n"), None);
    }
}

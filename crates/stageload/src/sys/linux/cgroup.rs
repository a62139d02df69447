//! A cgroup (version 2) that the job has to itself, as after `systemd-run --scope`: nobody in it can
//! hide, and the kernel knows what all of them hold together, pages they share counted once.

use std::fs;
use std::path::{Path, PathBuf};

use stageload_core::Bytes;

use super::text::number_in;

/// The folder of a process's cgroup; None for the root, which is everybody's.
pub(super) fn folder_of(process: &Path, mount: &Path) -> Option<PathBuf> {
    let text = fs::read(process.join("cgroup")).ok()?;
    let path = parse_path(&text)?;
    let folder = mount.join(path.trim_start_matches('/'));
    (path != "/" && folder.is_dir()).then_some(folder)
}

/// `0::/user.slice/run-1.scope`. A name can hold anything but a newline.
pub(super) fn parse_path(text: &[u8]) -> Option<&str> {
    let line = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let path = std::str::from_utf8(line).ok()?;
    // One that was left by a `..` would be outside the mount.
    (path.starts_with('/') && !path.split('/').any(|part| part == "..")).then_some(path)
}

/// Whoever is in it or below.
pub(super) fn pids(folder: &Path) -> Vec<i32> {
    let text = fs::read(folder.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = text.split(|b| *b == b'\n').filter_map(number_in).collect();
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    pids.extend(folders.flat_map(|entry| self::pids(&entry.path())));
    pids
}

/// What all of them hold. `memory.current` is not it: it has the page cache.
pub(super) fn held(folder: &Path) -> Option<Bytes> {
    let stat = fs::read(folder.join("memory.stat")).ok()?;
    let part = |key: &[u8]| {
        let line = |line| <[u8]>::strip_prefix(line, key)?.strip_prefix(b" ");
        number_in::<u64>(stat.split(|b| *b == b'\n').find_map(line)?)
    };
    let swapped = fs::read(folder.join("memory.swap.current")).ok();
    let swapped = swapped.as_deref().and_then(number_in::<u64>).unwrap_or_default();
    let resident = part(b"anon")?.checked_add(part(b"shmem")?)?;
    resident.checked_add(swapped).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_holds_its_anonymous_shared_and_swapped_memory_and_no_cache() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(held(folder.path()), None, "no memory controller");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.stat", "anon 3000\nfile 900000\nanon_thp 5\nshmem 200\n");
        assert_eq!(held(folder.path()), Some(Bytes(3200)), "swap is not accounted");
        write("memory.swap.current", "50\n");
        assert_eq!(held(folder.path()), Some(Bytes(3250)));
        write("memory.stat", "anon 18446744073709551615\nshmem 200\n");
        assert_eq!(held(folder.path()), None);
    }

    #[test]
    fn the_root_is_nobodys_own_and_a_path_cannot_leave_the_mount() {
        assert_eq!(parse_path(b"9:name=systemd:/x\n0::/a/b.scope\n"), Some("/a/b.scope"));
        assert_eq!(parse_path(b"0::/../../etc\n"), None);
        assert_eq!(parse_path(b"1:cpu:/\n"), None);
        let process = tempfile::tempdir().unwrap();
        fs::write(process.path().join("cgroup"), "0::/\n").unwrap();
        assert_eq!(folder_of(process.path(), process.path()), None);
    }

    #[test]
    fn whoever_is_in_a_group_below_is_in_it_too() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "7\n8\n").unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), "9\n").unwrap();
        assert_eq!(pids(folder.path()), [7, 8, 9]);
    }
}

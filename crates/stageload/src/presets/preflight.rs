//! What is looked at when a job is queued and again before it starts: that its inputs can be used
//! and its outputs written. What they are is told.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::param::any_of;
use super::picture::{self, Format};
use super::preset::{InputKind, Preset};
use super::programs::Programs;
use super::refusal::Refusal;
use crate::sys;
use crate::wire::PresetUse;

/// What an input was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The file's name.
    pub name: String,
    /// Its format, as people write it.
    pub kind: String,
    /// Width and height in pixels, upright, of a picture.
    pub size: Option<(u32, u32)>,
    /// Whether a picture has an alpha channel.
    pub has_alpha: bool,
    /// Whether it has to be turned to be upright.
    pub is_turned: bool,
    /// Whether all of it was decoded, not the header alone.
    pub is_decoded: bool,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.kind)?;
        if let Some((width, height)) = self.size {
            write!(f, ", {width}x{height} pixels")?;
        }
        f.write_str(if self.has_alpha { ", with alpha" } else { "" })?;
        f.write_str(if self.is_turned { ", turned upright" } else { "" })?;
        f.write_str(if self.is_decoded || self.size.is_none() { "" } else { ", header only" })
    }
}

impl Preset {
    /// Looks again for the job's program and what it works with, opens and decodes the inputs, and looks
    /// whether the outputs' folder can be written and has room. A picture over the preset's limit, at
    /// most 200 megapixels, is refused by its header; one over 50, or over 400 MB once decoded, is not decoded.
    pub fn preflight(
        &self,
        command: &[OsString],
        used: &PresetUse,
        programs: &dyn Programs,
    ) -> Result<Vec<Seen>, Refusal> {
        self.check_program(command, programs)?;
        self.check_chosen(used)?;
        let look = |path: &PathBuf| self.inspect(path, programs);
        let seen = used.inputs.iter().map(look).collect::<Result<_, _>>()?;
        if let Some(folder) = used.outputs.first().and_then(|path| path.parent()) {
            check_writable(folder)?;
            self.check_room(folder)?;
        }
        Ok(seen)
    }

    fn inspect(&self, path: &Path, programs: &dyn Programs) -> Result<Seen, Refusal> {
        let format = self.check_input(path, programs)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let bad = |why| Refusal::BadInput { path: path.to_owned(), why };
        let plain = |kind: &str| Seen {
            name: name.clone(),
            kind: kind.to_owned(),
            size: None,
            has_alpha: false,
            is_turned: false,
            is_decoded: false,
        };
        match (self.inputs.kind, format) {
            (InputKind::Image, Some(format)) => {
                let found = picture::inspect(path, format, &self.inputs).map_err(bad)?;
                Ok(Seen {
                    size: Some(found.size),
                    has_alpha: found.has_alpha,
                    is_turned: found.is_turned,
                    is_decoded: found.is_decoded,
                    ..plain(format.name())
                })
            }
            (InputKind::Text, _) => check_text(path).map(|()| plain("text")).map_err(bad),
            (InputKind::Word, _) => Ok(plain("word")),
            _ => Ok(plain("file")),
        }
    }

    /// That it is a file of a kind that the preset reads, by its first bytes.
    pub(super) fn check_input(
        &self,
        path: &Path,
        programs: &dyn Programs,
    ) -> Result<Option<Format>, Refusal> {
        if self.inputs.kind == InputKind::Word {
            return Ok(None);
        }
        let absent = |source| Refusal::NoInput { path: path.to_owned(), source };
        // Asked before it is opened: opening a pipe would wait for its writer.
        let file = fs::metadata(path).map_err(absent)?;
        if !file.is_file() {
            let is = if file.is_dir() { "a folder" } else { "a device or a pipe" };
            return Err(self.wrong_kind(path, is, "name a file"));
        }
        if file.len() == 0 {
            let why = "the file is empty; export or download it again".to_owned();
            return Err(Refusal::BadInput { path: path.to_owned(), why });
        }
        let format = Format::of(path).map_err(absent)?;
        match self.inputs.kind {
            InputKind::Image => self.check_picture(path, format, programs)?,
            _ => self.check_ending(path)?,
        }
        Ok(format)
    }

    fn check_picture(
        &self,
        path: &Path,
        format: Option<Format>,
        programs: &dyn Programs,
    ) -> Result<(), Refusal> {
        let Some(format) = format else {
            return Err(self.wrong_kind(path, "no picture that is known", "name a picture"));
        };
        let endings = &self.inputs.extensions;
        let is_read = endings.is_empty() || endings.iter().any(|one| format.has_ending(one));
        let is = format!("a {} picture", format.name());
        match format {
            Format::Heic if !is_read || programs.find("sips".as_ref()).is_none() => {
                Err(self.wrong_kind(path, &is, &conversion(path)))
            }
            Format::Known(_) if !is_read => {
                Err(self.wrong_kind(path, &is, "export it as one of these"))
            }
            _ => Ok(()),
        }
    }

    fn check_ending(&self, path: &Path) -> Result<(), Refusal> {
        let endings = &self.inputs.extensions;
        let own = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if endings.is_empty() || endings.contains(&own) {
            return Ok(());
        }
        let is = if own.is_empty() { "a file".to_owned() } else { format!("a .{own} file") };
        Err(self.wrong_kind(path, &is, "name one of these"))
    }

    fn wrong_kind(&self, path: &Path, is: &str, advice: &str) -> Refusal {
        let what = match self.inputs.kind {
            InputKind::Image => "pictures",
            InputKind::Text => "text",
            InputKind::Any | InputKind::Word => "files",
        };
        let endings = &self.inputs.extensions;
        let listed = format!("{what} ({})", any_of(endings));
        Refusal::WrongKind {
            path: path.to_owned(),
            is: is.to_owned(),
            preset: self.name.clone(),
            reads: if endings.is_empty() { what.to_owned() } else { listed },
            advice: advice.to_owned(),
        }
    }

    fn check_room(&self, folder: &Path) -> Result<(), Refusal> {
        match (self.disk, sys::free_space(folder)) {
            (Some(need), Some(free)) if free < need => Err(Refusal::NoSpace {
                folder: folder.to_owned(),
                free,
                preset: self.name.clone(),
                need,
            }),
            _ => Ok(()),
        }
    }
}

/// To be typed, so the name stands there as a shell reads it.
fn conversion(path: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let (from, to) = (quoted(path), quoted(&path.with_extension("png")));
    format!(
        "convert it: sips -s format png {from} --out {to} on a Mac, heif-convert {from} {to} \
         elsewhere"
    )
}

fn check_text(path: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot read it ({error}); check its permissions");
    let mut text = Vec::new();
    // Of a long text the first megabyte tells.
    File::open(path).map_err(cannot)?.take(1 << 20).read_to_end(&mut text).map_err(cannot)?;
    match std::str::from_utf8(&text) {
        // The end may have cut a letter in two.
        Err(error) if error.error_len().is_some() => {
            Err("it is no UTF-8 text; save it as plain text in UTF-8".to_owned())
        }
        _ if text.contains(&0) => Err("it is no text but binary; name a text file".to_owned()),
        _ => Ok(()),
    }
}

/// By writing: permissions do not tell of read-only disks, quotas and full ones.
pub(super) fn check_writable(folder: &Path) -> Result<(), Refusal> {
    let write = || {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(&[0; 4096])
    };
    write().map_err(|source| Refusal::Unwritable { folder: folder.to_owned(), source })
}

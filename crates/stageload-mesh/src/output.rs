//! The files a run leaves: all of them whole, or none.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::glb::{Origin, encode, png_bytes};
use crate::model::Model;
use crate::preview::sheet;
use crate::{Error, Result};

/// Where the mesh and its preview will be.
#[derive(Debug)]
pub(crate) struct Output {
    glb: PathBuf,
    preview: PathBuf,
}

impl Output {
    /// Makes sure, before any work, that files can be made there.
    pub(crate) fn probe(glb: &Path) -> Result<Self> {
        // Through a link to the file it names, as other programs write.
        let glb = std::fs::canonicalize(glb).unwrap_or_else(|_| glb.into());
        let preview = glb.with_extension("preview.png");
        for path in [&glb, &preview] {
            replaceable(path)
                .map_err(|source| Error::Uncreatable { path: path.clone(), source })?;
        }
        tempfile::tempfile_in(folder(&glb))
            .map_err(|source| Error::Uncreatable { path: glb.clone(), source })?;
        Ok(Self { glb, preview })
    }

    /// Writes the preview and the mesh; the mesh appears last.
    pub(crate) fn write(&self, model: &Model, origin: &Origin) -> Result<()> {
        let preview = staged(&self.preview, &png_bytes(&sheet(model)))?;
        let glb = staged(&self.glb, &encode(model, origin))?;
        put(preview, &self.preview)?;
        put(glb, &self.glb).inspect_err(|_| {
            // Best effort: a preview without its mesh would mislead.
            let _gone = std::fs::remove_file(&self.preview);
        })
    }
}

/// Nothing is there yet, or an ordinary file that may be written.
fn replaceable(path: &Path) -> std::io::Result<()> {
    match path.metadata() {
        Ok(there) if there.is_file() => OpenOptions::new().write(true).open(path).map(drop),
        Ok(there) if there.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(std::io::Error::other("it is a device or a pipe, not a file")),
        Err(_) => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The bytes in a file beside their place, removed again unless it is put there.
fn staged(place: &Path, bytes: &[u8]) -> Result<NamedTempFile> {
    let fail = |source| Error::Unwritten { path: place.into(), source };
    let mut file = tempfile::Builder::new()
        .prefix(".stageload-")
        .permissions(permissions())
        .tempfile_in(folder(place))
        .map_err(|source| Error::Uncreatable { path: place.into(), source })?;
    file.write_all(bytes).map_err(fail)?;
    // A full disk may say so only now.
    file.as_file().sync_all().map_err(fail)?;
    Ok(file)
}

fn put(file: NamedTempFile, place: &Path) -> Result<()> {
    let fail = |source| Error::Unwritten { path: place.into(), source };
    file.persist(place).map_err(|e| fail(e.error))?;
    Ok(())
}

/// What the user's umask makes of an ordinary new file; temporary files are private by default.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

//! What can go wrong on the way from a picture to a mesh, and the exit code of each kind.

use std::path::{Path, PathBuf};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no mesh. Each message says what, where and what to do now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The picture's file cannot be opened or read.
    #[error("cannot read {}: {source}; check the path and its permissions", path.display())]
    Unreadable {
        /// The picture.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// The file is no picture this program reads, or is damaged.
    #[error("{}: {why}", path.display())]
    BadPicture {
        /// The picture.
        path: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// There is nothing in the picture to make a mesh of.
    #[error("{}: {why}", path.display())]
    NoSubject {
        /// The picture.
        path: PathBuf,
        /// What was seen and what to do.
        why: String,
    },
    /// The output cannot be made where it was asked for.
    #[error("cannot create {}: {source}; choose another place with --out", path.display())]
    Uncreatable {
        /// The file or folder.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// Writing stopped half way; nothing is left behind.
    #[error(
        "cannot write {}: {source}; nothing was left there, make room and run again",
        path.display()
    )]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A staged model could not be had.
    #[error(transparent)]
    Models(#[from] stageload_torch::Error),
    /// The device asked for is not on this machine.
    #[error("--device mps: no Metal device on this machine; use --device cpu or auto")]
    NoDevice,
    /// The result failed the program's own check.
    #[error("the mesh failed its own check ({0}); this is a bug, please report the picture")]
    Unsound(String),
    /// libtorch refused an operation.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
}

impl Error {
    /// The process exit code, by kind (the numbers of BSD's sysexits).
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoDevice => 64,
            Self::BadPicture { .. } | Self::NoSubject { .. } => 65,
            Self::Unreadable { .. } => 66,
            Self::Models(_) | Self::Unsound(_) | Self::Torch(_) => 70,
            Self::Uncreatable { .. } => 73,
            Self::Unwritten { .. } => 74,
        }
    }

    pub(crate) fn bad(path: &Path, why: impl Into<String>) -> Self {
        Self::BadPicture { path: path.into(), why: why.into() }
    }

    pub(crate) fn no_subject(path: &Path, why: impl Into<String>) -> Self {
        Self::NoSubject { path: path.into(), why: why.into() }
    }
}

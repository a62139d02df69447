//! What can go wrong with staged models, in words for the person who wrote the pipeline.

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a model or a stage could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry has no such model.
    #[error("unknown model {name:?}; this pipeline has {known}")]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The registry has no such stage.
    #[error("unknown stage {stage:?}; this pipeline has {known}")]
    UnknownStage {
        /// The name asked for.
        stage: String,
        /// The names there are.
        known: String,
    },
    /// A handle outlived the model it was taken from.
    #[error(
        "{name:?} was released{} and its weights are gone; \
         take a new handle instead of keeping the old one",
        stage.as_ref().map(|s| format!(" when entering stage {s:?}")).unwrap_or_default()
    )]
    Released {
        /// The model.
        name: String,
        /// The stage whose beginning released it.
        stage: Option<String>,
    },
    /// A model has no tensor of this name.
    #[error("no tensor {0:?} in these weights: the file is of another model or version")]
    NoTensor(String),
    /// The file of weights cannot be read.
    #[error("cannot read weights: {0}")]
    Weights(String),
    /// libtorch refused.
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    /// A loader failed.
    #[error("cannot load {name:?}: {source}")]
    Load {
        /// The model.
        name: String,
        /// Why.
        source: Box<Error>,
    },
}

//! Staged models on libtorch: a model is loaded when its stage asks for it and its memory is given
//! back when a stage that does not list it begins. No result changes by a bit, because a load
//! leaves the random generators where they were.
//!
//! ```
//! use stageload_torch::{Residency, StagedModels, Weights};
//! use tch::{Device, Tensor};
//!
//! let mut models = StagedModels::new(Residency::Staged, Device::Cpu)
//!     .model("encoder", |_| Ok(Weights::from_iter([("w".into(), Tensor::from(2.0))])))
//!     .stage("encode", ["encoder"])
//!     .stage("decode", []);
//! models.enter("encode")?;
//! let encoder = models.handle("encoder")?;
//! assert_eq!(models.weights(&encoder)?.get("w")?.double_value(&[]), 2.0);
//! models.enter("decode")?; // gives the encoder's memory back
//! assert!(models.weights(&encoder).is_err());
//! # Ok::<(), stageload_torch::Error>(())
//! ```
//!
//! What is not here: which models a pipeline has (the pipeline's crate) and who reads the events
//! (the supervisor).

mod clock;
mod error;
mod events;
mod registry;
mod rng;
mod shim;
mod weights;

pub use clock::monotonic_seconds;
pub use error::{Error, Result};
pub use events::{EventFile, EventSink};
pub use registry::{Handle, Residency, StagedModels};
pub use rng::preserved_rng;
pub use shim::{empty_device_cache, mps_is_available};
pub use weights::Weights;

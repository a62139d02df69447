//! One picture to a textured mesh: the embedded image-to-3D pipeline.
//!
//! It gives a quick relief model. The front is the picture, the outline is exact, the thickness is
//! inflated from the outline and improved by a small learned prior; the side that the picture does
//! not show is a guess. `pipeline.rs` is the place to begin reading.
//!
//! What is not here: watching memory, stopping, queueing (the `stageload` crate does that to this
//! program from outside), and heavy generative models.

mod camera;
mod components;
mod distance;
mod error;
mod front;
mod glb;
#[cfg(test)]
mod held_out;
mod matte;
mod model;
mod options;
mod outline;
mod output;
#[cfg(test)]
mod parity;
mod picture;
mod pipeline;
mod plane;
mod poisson;
pub mod preview;
mod prior;
mod relief;
mod simplify;
mod smooth;
mod surface;
mod tensor;
mod texture;
mod topology;
mod u2netp;

pub use error::{Error, Result};
pub use front::{Front, front_of};
pub use glb::Origin;
pub use model::Model;
pub use options::{Back, DeviceChoice, Grid, Load, Options, ShapeChoice, Texture};
pub use pipeline::{Report, run};
pub use topology::Topology;

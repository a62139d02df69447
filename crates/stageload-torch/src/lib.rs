//! Staged models on libtorch.

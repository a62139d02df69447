//! A model's weights as named tensors.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use stageload_core::Bytes;
use tch::{Device, Kind, Tensor};

use crate::shim::{self, Storage, Watch};
use crate::{Error, Result};

/// Named tensors of one model, in float32 on one device.
#[derive(Debug, Default)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// Reads a safetensors file's bytes. Half precision is widened: on a CPU half-precision
    /// arithmetic is slower, and files keep it only to be small.
    ///
    /// # Errors
    /// When the bytes are not safetensors or hold a type other than f16, bf16 or f32.
    pub fn from_safetensors(bytes: &[u8], device: Device) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(|e| Error::Weights(e.to_string()))?;
        let mut map = BTreeMap::new();
        for (name, view) in file.tensors() {
            map.insert(name, tensor(&view)?.to_kind(Kind::Float).to_device(device));
        }
        Ok(Self(map))
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.0.get(name).ok_or_else(|| Error::NoTensor(name.into()))
    }

    /// Bytes of storage under these tensors; a storage that two of them share counts once.
    pub fn nbytes(&self) -> Bytes {
        Bytes(self.storages().map(|(_, storage)| storage.nbytes).sum())
    }

    /// Drops the weights and gives the bytes that stay, because a tensor cloned out of them still
    /// owns their storage.
    pub(crate) fn release(self) -> Bytes {
        let watched: Vec<(Watch, u64)> = self
            .storages()
            .filter_map(|(tensor, storage)| Some((Watch::new(tensor)?, storage.nbytes)))
            .collect();
        drop(self);
        Bytes(watched.iter().filter(|(watch, _)| watch.is_alive()).map(|(_, n)| n).sum())
    }

    /// Each storage once, with one tensor that owns it.
    fn storages(&self) -> impl Iterator<Item = (&Tensor, Storage)> {
        let mut seen = BTreeSet::new();
        let all = self.0.values().map(|tensor| (tensor, shim::storage(tensor)));
        all.filter(move |(_, storage)| seen.insert(storage.id))
    }
}

impl FromIterator<(String, Tensor)> for Weights {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

fn tensor(view: &TensorView<'_>) -> Result<Tensor> {
    let kind = match view.dtype() {
        Dtype::F16 => Kind::Half,
        Dtype::BF16 => Kind::BFloat16,
        Dtype::F32 => Kind::Float,
        other => return Err(Error::Weights(format!("unexpected type {other:?}"))),
    };
    let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
    Ok(Tensor::f_from_data_size(view.data(), &shape, kind)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_pair() -> (Weights, Tensor) {
        let whole = Tensor::zeros([1024], (Kind::Float, Device::Cpu));
        let views = [("a", whole.narrow(0, 0, 512)), ("b", whole.narrow(0, 512, 512))];
        (views.map(|(n, t)| (n.to_owned(), t)).into_iter().collect(), whole)
    }

    #[test]
    fn a_storage_that_two_tensors_share_counts_once() {
        let (weights, _whole) = shared_pair();
        assert_eq!(weights.nbytes(), Bytes(4096));
    }

    #[test]
    fn a_release_tells_the_bytes_that_a_clone_keeps() {
        let (weights, whole) = shared_pair();
        assert_eq!(weights.release(), Bytes(4096));
        drop(whole);
        let (weights, _) = shared_pair();
        assert_eq!(weights.release(), Bytes::ZERO);
    }

    #[test]
    fn bytes_that_are_not_safetensors_are_an_error() {
        let error = Weights::from_safetensors(b"not a file of weights", Device::Cpu).unwrap_err();
        assert!(error.to_string().starts_with("cannot read weights"), "{error}");
    }

    #[test]
    fn a_missing_tensor_is_an_error_that_names_it() {
        let error = Weights::default().get("conv1.weight").unwrap_err();
        assert!(error.to_string().contains("conv1.weight"));
    }
}

//! A model's weights as named tensors.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use stageload_core::Bytes;
use tch::{Device, Kind, Tensor};

use crate::{Error, Result, shim};

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
        Bytes(self.storages().map(|s| s.nbytes).sum())
    }

    /// Bytes that dropping these weights would not free, because a tensor elsewhere still owns
    /// their storage.
    pub(crate) fn shared_nbytes(&self) -> Bytes {
        let mut own = BTreeMap::<usize, u64>::new();
        for tensor in self.0.values() {
            *own.entry(shim::storage(tensor).id).or_default() += 1;
        }
        Bytes(self.storages().filter(|s| s.owners > own[&s.id]).map(|s| s.nbytes).sum())
    }

    fn storages(&self) -> impl Iterator<Item = shim::Storage> {
        let mut seen = BTreeSet::new();
        self.0.values().map(shim::storage).filter(move |s| seen.insert(s.id))
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
    fn bytes_that_another_tensor_owns_are_told_apart() {
        let (weights, whole) = shared_pair();
        assert_eq!(weights.shared_nbytes(), Bytes(4096));
        drop(whole);
        assert_eq!(weights.shared_nbytes(), Bytes::ZERO);
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

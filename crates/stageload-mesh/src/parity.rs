//! The ports against the nets they were made from: vectors written by `weights/convert_*.py` and
//! `training/parity.py` with onnxruntime and `PyTorch`.

use std::collections::HashMap;

use stageload_torch::Weights;
use tch::{Device, Kind, Tensor};

use crate::{prior, u2netp};

fn fixture(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/tests/fixtures/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    let tensors = Tensor::read_safetensors(path).unwrap().into_iter();
    tensors.map(|(name, t)| (name, t.to_kind(Kind::Float))).collect()
}

fn weights(bytes: &[u8]) -> Weights {
    Weights::from_safetensors(bytes, Device::Cpu).unwrap()
}

fn assert_close(ours: &Tensor, theirs: &Tensor, tolerance: f64) {
    assert_eq!(ours.size(), theirs.size());
    let difference = (ours - theirs).abs().max().double_value(&[]);
    assert!(difference < tolerance, "largest difference {difference:e}");
}

#[test]
fn u2netp_gives_what_onnxruntime_gives() {
    let _inference = tch::no_grad_guard();
    let vectors = fixture("u2netp_parity");
    let weights = weights(include_bytes!("../weights/u2netp.safetensors"));
    let saliency = u2netp::saliency(&weights, &vectors["input"]).unwrap();
    assert_close(&saliency, &vectors["output"], 1e-4);
}

#[test]
fn the_shape_prior_gives_what_its_training_gave() {
    let _inference = tch::no_grad_guard();
    let vectors = fixture("shape_prior_parity");
    let weights = weights(include_bytes!("../weights/shape_prior.safetensors"));
    let (mid, ratio) = prior::net(&weights, &vectors["input"]).unwrap();
    assert_close(&mid, &vectors["mid"], 1e-4);
    assert_close(&ratio, &vectors["log_ratio"], 1e-4);
}

#[test]
fn the_priors_inputs_are_made_as_in_training() {
    let _inference = tch::no_grad_guard();
    let vectors = fixture("shape_prior_parity");
    let rgb = &vectors["rgb"] / 255.0;
    let input = prior::inputs(&rgb, &vectors["mask"], &vectors["root"]);
    assert_close(&input, &vectors["input"], 1e-4);
}

#[test]
fn the_priors_potential_is_solved_as_in_training() {
    let _inference = tch::no_grad_guard();
    let vectors = fixture("poisson_parity");
    for shape in ["disc", "blob"] {
        let root = prior::root_potential(&vectors[&format!("{shape}_mask")]);
        assert_close(&root, &vectors[&format!("{shape}_root")], 1e-5);
    }
}

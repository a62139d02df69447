//! Running the worker as its users do, and reading back what it made.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use image::RgbImage;
use stageload_mesh::Model;

/// The folder of the five test photos, which `make test` fills.
pub(crate) fn photos() -> PathBuf {
    let folder = std::env::var_os("STAGELOAD_PHOTOS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/photos"),
        PathBuf::from,
    );
    assert!(
        folder.join("coffee.png").exists(),
        "no photos in {}: run `make test`, or scripts/sample-photos.py with this folder",
        folder.display()
    );
    folder
}

pub(crate) fn worker(image: &Path, out: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stageload-mesh"))
        .arg(image)
        .arg("--out")
        .arg(out)
        .args(flags)
        // Tests run side by side; waiting threads that spin would starve the others.
        .env("OMP_WAIT_POLICY", "passive")
        .output()
        .expect("the worker was built with the tests")
}

pub(crate) fn mesh(image: &Path, out: &Path, flags: &[&str]) {
    let run = worker(image, out, flags);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{}: {said}", image.display());
}

/// A GLB read back with the `gltf` crate, and its extras.
pub(crate) fn read(path: &Path) -> (Model, serde_json::Value) {
    let gltf = gltf::Gltf::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let binary = gltf.blob.as_deref().unwrap();
    let mesh = gltf.meshes().next().unwrap();
    let primitive = mesh.primitives().next().unwrap();
    let reader = primitive.reader(|_| Some(binary));
    let model = Model {
        positions: reader.read_positions().unwrap().collect(),
        normals: reader.read_normals().unwrap().collect(),
        uvs: reader.read_tex_coords(0).unwrap().into_f32().collect(),
        indices: reader.read_indices().unwrap().into_u32().collect(),
        atlas: atlas(&gltf, binary),
    };
    let json: serde_json::Value = serde_json::from_slice(&gltf_json(path)).unwrap();
    (model, json["asset"]["extras"].clone())
}

fn atlas(gltf: &gltf::Gltf, binary: &[u8]) -> RgbImage {
    let image = gltf.images().next().unwrap();
    let gltf::image::Source::View { view, .. } = image.source() else {
        panic!("the texture lies inside the file")
    };
    let png = &binary[view.offset()..view.offset() + view.length()];
    image::load_from_memory(png).unwrap().into_rgb8()
}

fn gltf_json(path: &Path) -> Vec<u8> {
    let file = std::fs::read(path).unwrap();
    let length = u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize;
    file[20..20 + length].to_vec()
}

/// Files in a folder, hidden ones too.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

//! Compiles `shim.cpp` against the libtorch that torch-sys found, and passes its folder on.

use std::path::PathBuf;

fn main() {
    let lib = PathBuf::from(
        std::env::var("DEP_TCH_LIBTORCH_LIB").expect("torch-sys is a direct dependency"),
    );
    let include = lib.parent().expect("libtorch's lib folder has a parent").join("include");
    cc::Build::new()
        .cpp(true)
        .warnings(false)
        .std("c++17")
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .file("shim.cpp")
        .compile("stageload_torch_shim");
    println!("cargo:rerun-if-changed=shim.cpp");
    // Tests and examples of this crate find libtorch here; other crates read DEP_…_LIB.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    println!("cargo:lib={}", lib.display());
}

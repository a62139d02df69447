//! Lets the worker find libtorch: in the build's own folder, or in `../lib` of an installed copy.

fn main() {
    let lib = std::env::var("DEP_STAGELOAD_TORCH_LIB").expect("stageload-torch says where it is");
    let os = std::env::var("CARGO_CFG_TARGET_OS").expect("cargo sets the target");
    let here = if os == "macos" { "@loader_path" } else { "$ORIGIN" };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{here}/../lib");
}

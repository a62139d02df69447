use std::path::{Path, PathBuf};

use image::ImageFormat;
use stageload_core::Bytes;

use super::{
    Everywhere, Nowhere, Order, SMALL, check, folder, make, preflight, small, write_picture,
};
use crate::presets::{Preset, Presets, Programs, Refusal};

fn sentence<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_unknown_preset_is_told_with_the_nearest_name() {
    let (presets, _) = Presets::load(Path::new("/no/such/home"));
    let text = sentence(presets.get("pixel3d"));
    assert_eq!(text, "there is no preset \"pixel3d\"; did you mean pixal3d?");
    let text = sentence(presets.get("video"));
    let all = "there are: command, mesh, pixal3d, qwen-image";
    assert_eq!(text, format!("there is no preset \"video\"; {all}"));
}

#[test]
fn an_unknown_parameter_and_a_bad_value_are_told_with_what_is_right() {
    let (folder, picture) = folder();
    let refused = |name, value| {
        sentence(make(&small(), std::slice::from_ref(&picture), &[(name, value)], folder.path()))
    };
    assert_eq!(refused("sized", "512"), "small has no parameter \"sized\"; did you mean size?");
    assert_eq!(
        refused("colour", "red"),
        "small has no parameter \"colour\"; there are: size, seed, loud"
    );
    assert_eq!(
        refused("seed", "100"),
        "small: seed=\"100\" cannot be: it must be a whole number from 0 to 99"
    );
    assert_eq!(
        refused("size", "2048"),
        "small: size=\"2048\" cannot be: it must be 1024, 768 or 512"
    );
    assert_eq!(refused("loud", "very"), "small: loud=\"very\" cannot be: it must be true or false");
}

#[test]
fn a_value_that_is_needed_is_asked_for_by_name() {
    let text = SMALL.replace("    default = 1024\n", "");
    let (folder, picture) = folder();
    let refused = make(&check::parse(&text).unwrap(), &[picture], &[], folder.path());
    assert_eq!(sentence(refused), "small needs a value for size (side); set size=...");
}

#[test]
fn too_many_and_too_few_inputs_are_counted() {
    let (folder, picture) = folder();
    let refused =
        |preset: &Preset, n| sentence(make(preset, &vec![picture.clone(); n], &[], folder.path()));
    assert_eq!(
        refused(&small(), 2),
        "small takes one input, and 2 are given; queue a job for each"
    );
    assert_eq!(
        refused(&small(), 0),
        "small takes one input, and 0 are given; name what to work on"
    );
    let none = check::parse("name='x'\nabout=''\nversion=1\ncommand=['a']").unwrap();
    assert_eq!(refused(&none, 1), "x takes no input, and 1 is given; leave it away");
    let (presets, _) = Presets::load(Path::new("/no/such/home"));
    let text = refused(presets.get("command").unwrap(), 0);
    assert_eq!(text, "command takes at least one input, and 0 are given; name what to work on");
}

#[test]
fn an_input_that_is_not_there_or_no_picture_is_told() {
    let (folder, _) = folder();
    let refused = |name: &str| {
        let path = folder.path().join(name);
        let text = sentence(make(&small(), std::slice::from_ref(&path), &[], folder.path()));
        text.replace(&folder.path().display().to_string(), "DIR")
    };
    assert_eq!(
        refused("no.png"),
        "cannot read DIR/no.png: No such file or directory (os error 2); check the path and its \
         permissions"
    );
    std::fs::write(folder.path().join("text.png"), "not a picture").unwrap();
    assert_eq!(
        refused("text.png"),
        "DIR/text.png is no picture that is known, and small reads pictures (png, jpg or webp); name \
         a picture"
    );
    assert_eq!(
        refused("."),
        "DIR is a folder, and small reads pictures (png, jpg or webp); name a file"
    );
    std::fs::write(folder.path().join("none.png"), "").unwrap();
    assert_eq!(refused("none.png"), "DIR/none.png: the file is empty; export or download it again");
    write_picture(&folder.path().join("named.png"), ImageFormat::Tiff);
    assert_eq!(
        refused("named.png"),
        "DIR/named.png is a TIFF picture, and small reads pictures (png, jpg or webp); export it as \
         one of these"
    );
}

#[test]
fn a_heic_is_refused_with_the_command_that_converts_it() {
    let (folder, _) = folder();
    let path = folder.path().join("it's.heic");
    std::fs::write(&path, b"\0\0\0\x24ftypheic\0\0\0\0mif1").unwrap();
    let text = sentence(make(&small(), &[path], &[], folder.path()));
    let text = text.replace(&folder.path().display().to_string(), "DIR");
    assert_eq!(
        text,
        "DIR/it's.heic is a HEIC picture, and small reads pictures (png, jpg or webp); convert it: \
         sips -s format png 'DIR/it'\\''s.heic' --out 'DIR/it'\\''s.png' on a Mac, \
         heif-convert 'DIR/it'\\''s.heic' 'DIR/it'\\''s.png' elsewhere"
    );
}

#[test]
fn outputs_that_cannot_be_written_are_refused() {
    let (folder, picture) = folder();
    let refused = |output: &Path| {
        let text = sentence(make(&small(), std::slice::from_ref(&picture), &[], output));
        text.replace(&folder.path().display().to_string(), "DIR")
    };
    let text = refused(&folder.path().join("no/to.png"));
    assert!(text.starts_with("cannot write to the folder DIR/no: No such file"), "{text}");
    assert!(text.ends_with("; create it, or choose another place"), "{text}");
    assert_eq!(
        refused(&folder.path().join("to.jpg")),
        "DIR/to.jpg cannot be the name of what small makes: it must end in .png"
    );
    std::fs::write(folder.path().join("to.txt"), "").unwrap();
    assert_eq!(
        refused(&folder.path().join("to.png")),
        "DIR/to.txt exists already; choose another name, or say that it may be overwritten"
    );
    assert_eq!(
        refused(&picture),
        "DIR/cup.png: it is the input, and the output would replace it; choose another name"
    );
}

/// Even root cannot write there, which tests often are.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_nobody_can_write_to_is_found_out_by_writing() {
    let (_folder, picture) = folder();
    let text = sentence(make(&small(), &[picture], &[], Path::new("/proc/to.png")));
    assert!(text.starts_with("cannot write to the folder /proc: "), "{text}");
    assert!(text.ends_with("; create it, or choose another place"), "{text}");
}

#[test]
fn an_output_may_be_overwritten_if_that_is_said_but_never_the_input_or_a_folder() {
    let (folder, picture) = folder();
    let inputs = std::slice::from_ref(&picture);
    let with = |output: &Path| {
        let order = Order { inputs, output: Some(output), overwrite: true, ..Order::default() };
        small().make_order(&order, &Everywhere)
    };
    let there = folder.path().join("to.png");
    std::fs::write(&there, "").unwrap();
    assert_eq!(with(&there).unwrap().outputs[0], there);
    assert!(sentence(with(&picture)).contains("it is the input"));
    let link = folder.path().join("link.png");
    std::fs::hard_link(&picture, &link).unwrap();
    assert!(sentence(with(&link)).contains("it is the input"));
    std::fs::create_dir(folder.path().join("to.txt")).unwrap();
    assert!(sentence(with(&there)).contains("to.txt exists already"));
}

#[test]
fn a_preset_without_outputs_takes_no_name_for_one() {
    let none = check::parse("name='x'\nabout=''\nversion=1\ncommand=['a']").unwrap();
    assert_eq!(
        sentence(make(&none, &[], &[], Path::new("x.glb"))),
        "x makes no file that it could be told the name of; leave the output away"
    );
}

#[test]
fn a_program_that_is_not_installed_is_told_before_the_wait() {
    let (folder, picture) = folder();
    let inputs = std::slice::from_ref(&picture);
    let order = Order { inputs, output: Some(folder.path()), ..Order::default() };
    assert_eq!(
        sentence(small().make_order(&order, &Nowhere)),
        "small: there is no program \"prog\"; is it installed? Ask the tests."
    );
    let (presets, _) = Presets::load(Path::new("/no/such/home"));
    let text = sentence(presets.get("mesh").unwrap().make_order(&order, &Nowhere));
    assert!(text.starts_with("mesh: there is no program \"stageload-mesh\"; is it"), "{text}");
    let words = [PathBuf::from("no-such-program-here")];
    let text = sentence(presets.get("command").unwrap().make(&words, &[], None));
    assert_eq!(
        text,
        "command: there is no program \"no-such-program-here\"; is it installed? Check its name, or \
         give its path."
    );
}

#[test]
fn weights_and_scripts_that_are_not_there_are_told() {
    let text =
        SMALL.replace("    install", "    requires = [\"/no/such/{size}.gguf\"]\n    install");
    let (folder, picture) = folder();
    let refused = make(&check::parse(&text).unwrap(), &[picture], &[], folder.path());
    assert_eq!(
        sentence(refused),
        "small: /no/such/1024.gguf is not there; is it installed? Ask the tests."
    );
}

#[test]
fn a_disk_without_room_is_told_with_both_sizes() {
    let (folder, picture) = folder();
    let with = |disk: &str| {
        let text = SMALL.replace("    install", &format!("    disk = \"{disk}\"\n    install"));
        let outputs = [folder.path().join("to.png")];
        let inputs = std::slice::from_ref(&picture);
        preflight(&check::parse(&text).unwrap(), inputs, &outputs, &Everywhere)
    };
    with("1K").unwrap();
    let text = sentence(with("1000000T"));
    assert!(text.contains(&format!("are free in {}", folder.path().display())), "{text}");
    let need = Bytes::gib(1024 * 1_000_000);
    let tail = format!("and small needs {need}; make room, or choose another place");
    assert!(text.ends_with(&tail), "{text}");
    assert!(crate::sys::free_space(folder.path()).is_some_and(|free| free > Bytes::ZERO));
    assert_eq!(crate::sys::free_space(Path::new("/no/such/folder")), None);
}

#[test]
fn text_is_told_from_what_is_none() {
    let preset = check::parse(
        "name='x'\nabout=''\nversion=1\ncommand=['a', '{input}']\n[inputs]\nkind='text'\nextensions=['txt']",
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        preflight(&preset, &[path], &[], &Everywhere)
    };
    assert_eq!(check("a.txt", "मेश".as_bytes()).unwrap()[0].to_string(), "a.txt: text");
    let long = "é".repeat(1 << 19) + "é";
    check("long.TXT", &[b"a", long.as_bytes()].concat()).unwrap();
    assert!(sentence(check("b.txt", &[0xff, 0xfe, b'a'])).ends_with("plain text in UTF-8"));
    assert!(sentence(check("c.txt", b"a\0b")).ends_with("name a text file"));
    let text = sentence(check("d.md", b"a"));
    assert!(
        text.ends_with("d.md is a .md file, and x reads text (txt); name one of these"),
        "{text}"
    );
}

#[test]
fn what_was_there_when_the_job_was_queued_is_looked_for_again() {
    let (folder, picture) = folder();
    let text = SMALL.replacen(
        "    [[outputs]]",
        "    [[params]]\n    name = 'weights'\n    type = 'file'\n    about = 'w'\n    [[outputs]]",
        1,
    );
    let preset = check::parse(&text).unwrap();
    let weights = folder.path().join("w.gguf");
    std::fs::write(&weights, "x").unwrap();
    let pairs = [("weights", weights.to_str().unwrap())];
    let made = make(&preset, std::slice::from_ref(&picture), &pairs, folder.path()).unwrap();
    let used = made.preset_use(&preset);
    let again = |programs: &dyn Programs| preset.preflight(&made.command, &used, programs);
    assert_eq!(again(&Everywhere).unwrap().len(), 1);
    assert!(sentence(again(&Nowhere)).contains("no program \"/bin/prog\""));
    std::fs::remove_file(&weights).unwrap();
    let text = sentence(again(&Everywhere));
    assert!(
        text.ends_with("w.gguf\" cannot be: it must be a file that is there; check the path"),
        "{text}"
    );
    std::fs::write(&weights, "x").unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(sentence(again(&Everywhere)).starts_with("cannot read "));
}

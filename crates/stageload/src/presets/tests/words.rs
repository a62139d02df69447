use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use stageload_core::Bytes;
use stageload_core::queue::{Expected, Lower};

use super::{Everywhere, Order, SMALL, check, folder, make, set, small, write_picture};
use crate::presets::Preset;

const TEXTS: &str = r#"
    name = "texts"
    about = "a test's"
    version = 1
    command = [
        "prog", "{a}", "--b={b}", "{a}and{b}", { if = "c", words = ["--c", "{c}"] },
        { unless = "c", words = ["--no-c"] },
    ]
    [[params]]
    name = "a"
    type = "text"
    about = "any text"
    [[params]]
    name = "b"
    type = "text"
    about = "any text"
    [[params]]
    name = "c"
    type = "text"
    about = "any text, or none"
"#;

/// Texts as people and attackers type them.
fn text() -> impl Strategy<Value = String> {
    let hostile = prop_oneof![
        Just("$(touch x)"),
        Just("`x`"),
        Just("-rf"),
        Just("--"),
        Just("{a}"),
        Just("{{"),
        Just("\n"),
        Just("\r\n"),
        Just("'"),
        Just("\""),
        Just("\\"),
        Just(" "),
        Just(";"),
        Just("मेश"),
        Just("\u{202e}"),
        Just("%s"),
        Just("*"),
        Just("~/"),
        Just("a b"),
        Just("false"),
    ];
    let pieces = prop::collection::vec(
        prop_oneof![
            hostile.prop_map(str::to_owned),
            any::<String>().prop_map(|text| text.replace('\0', "")),
        ],
        0..6,
    );
    pieces.prop_map(|pieces| pieces.concat())
}

fn byte_of_a_name() -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("not in a name", |byte| *byte != 0 && *byte != b'/')
}

proptest! {
    #[test]
    fn a_value_is_in_its_word_unchanged_whatever_is_in_it(a in text(), b in text(), c in text()) {
        let preset = check::parse(TEXTS).unwrap();
        let set = set(&[("a", &a), ("b", &b), ("c", &c)]);
        let order = Order { set: &set, ..Order::default() };
        let made = preset.make_order(&order, &Everywhere).unwrap();
        let both = format!("{a}and{b}");
        let mut words = vec!["/bin/prog".to_owned(), a, format!("--b={b}"), both];
        words.extend(match c.as_str() {
            "" => vec!["--no-c".to_owned()],
            _ => vec!["--c".to_owned(), c],
        });
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        prop_assert_eq!(made.command, words);
    }

    #[test]
    fn a_file_is_in_its_word_unchanged_whatever_its_name_is(
        name in prop::collection::vec(byte_of_a_name(), 1..40)
    ) {
        let (folder, picture) = folder();
        let input = folder.path().join(OsString::from_vec(name));
        prop_assume!(input.file_name().is_some() && input.parent() == Some(folder.path()));
        // macOS refuses names that are not UTF-8.
        prop_assume!(std::fs::copy(&picture, &input).is_ok());
        let output = folder.path().join("to.png");
        let made = make(&small(), std::slice::from_ref(&input), &[], &output).unwrap();
        prop_assert_eq!(made.command.len(), 4);
        prop_assert_eq!(&made.command[1], input.as_os_str());
    }

    #[test]
    fn going_down_ends_and_never_goes_up(
        size in prop::sample::select(&["1024", "768", "512"][..]),
        way in prop::sample::select(&["fine", "fast"][..]),
    ) {
        let preset = check::parse(TWO_WAYS).unwrap();
        let size = ("size".to_owned(), size.to_owned());
        let mut values = BTreeMap::from([size, ("way".to_owned(), way.to_owned())]);
        let mut steps = 0;
        while let Some((words, lower)) = preset.next_lower(&values) {
            let number = |values: &BTreeMap<String, String>| values["size"].parse::<u32>().unwrap();
            prop_assert!(number(&lower) <= number(&values), "{words}");
            prop_assert!(values["way"] != "fast" || lower["way"] == "fast", "{words}");
            prop_assert_ne!(&lower, &values);
            values = lower;
            steps += 1;
            prop_assert!(steps < 5);
        }
        prop_assert_eq!((values["size"].as_str(), values["way"].as_str()), ("512", "fast"));
    }
}

/// Rungs that go up and down again, and one of words that cannot be compared.
const TWO_WAYS: &str = r#"
    name = "two-ways"
    about = "a test's"
    version = 1
    command = ["prog", "{size}", "{way}"]
    [[params]]
    name = "size"
    type = "int"
    about = "side"
    [[params]]
    name = "way"
    type = "choice"
    choices = ["fast", "fine"]
    about = "how"
    [[ladder]]
    about = "all of it"
    set = { size = 1024, way = "fine" }
    [[ladder]]
    about = "smaller"
    set = { size = 768 }
    [[ladder]]
    about = "faster"
    set = { way = "fast" }
    [[ladder]]
    about = "small"
    set = { size = 512, way = "fast" }
"#;

#[test]
fn a_job_has_everything_that_its_preset_tells() {
    let (folder, picture) = folder();
    let output = folder.path().join("to.png");
    let pairs = [("loud", "yes"), ("seed", "3"), ("seed", "08")];
    let made = make(&small(), std::slice::from_ref(&picture), &pairs, &output).unwrap();
    let to = format!("--to={}", output.display());
    let words: Vec<OsString> = vec![
        "/bin/prog".into(),
        picture.clone().into(),
        to.into(),
        "--loud".into(),
        "--size=1024".into(),
    ];
    assert_eq!(made.command, words);
    assert_eq!(made.values["seed"], "8", "of two values the later counts");
    assert_eq!(made.inputs, [picture]);
    assert_eq!(made.outputs, [output, folder.path().join("to.txt")]);
    assert_eq!(made.key, "small 2 loud=true size=1024", "the seed does not matter");
    assert_eq!(made.declared, Some(Expected { peak: Bytes::gib(2), stage: None }));
    assert_eq!(made.lower, Lower::Ask("smaller (size 768 instead of 1024)".to_owned()));
    let used = made.preset_use(&small());
    assert_eq!((used.name.as_str(), used.values.len()), ("small", 3));
}

#[test]
fn a_folder_as_output_gets_the_name_that_the_preset_gives() {
    let (folder, picture) = folder();
    let made = make(&small(), &[picture], &[], folder.path()).unwrap();
    assert_eq!(made.outputs, [folder.path().join("cup-7.png"), folder.path().join("cup-7.txt")]);
}

#[test]
fn what_may_be_tried_lower_is_asked_unless_it_was_allowed() {
    let (folder, picture) = folder();
    let lower = |size: &str, may_lower| {
        let set = set(&[("size", size)]);
        let inputs = std::slice::from_ref(&picture);
        let output = Some(folder.path());
        let order = Order { inputs, set: &set, output, may_lower, overwrite: false };
        small().make_order(&order, &Everywhere).unwrap().lower
    };
    assert_eq!(lower("768", true), Lower::Allowed("small (size 512 instead of 768)".to_owned()));
    assert_eq!(lower("512", true), Lower::Nothing);
}

#[test]
fn after_a_kill_the_lower_values_make_the_next_job() {
    let (folder, picture) = folder();
    let preset = small();
    let first = make(&preset, std::slice::from_ref(&picture), &[], folder.path()).unwrap();
    let (_, values) = preset.next_lower(&first.values).unwrap();
    let pairs: Vec<(&str, &str)> = values.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let second = make(&preset, &first.inputs, &pairs, &first.outputs[0]).unwrap();
    assert_eq!(second.command[3], "--size=768");
    assert_eq!(second.outputs, first.outputs);
    assert_eq!(second.declared.map(|one| one.peak), Some(Bytes::gib(1)));
}

#[test]
fn an_input_that_looks_like_a_flag_is_made_absolute() {
    let here = std::env::current_dir().unwrap();
    let folder = tempfile::tempdir_in(&here).unwrap();
    let picture = folder.path().join("-rf.png");
    write_picture(&picture, image::ImageFormat::Png);
    let input = picture.strip_prefix(&here).unwrap().to_owned();
    assert!(input.is_relative());
    let made = make(&small(), &[input], &[], folder.path()).unwrap();
    assert_eq!(made.command[1], picture.as_os_str());
    let dash = std::path::absolute("-rf.png").unwrap();
    assert!(dash.is_absolute() && dash.ends_with("-rf.png"));
}

#[test]
fn any_command_is_passed_on_word_by_word() {
    let preset = built_in("command");
    let words: Vec<PathBuf> = ["sh", "-c", "echo $(touch x)\n", "", "--"].map(PathBuf::from).into();
    let made = preset.make(&words, &[], None).unwrap();
    assert!(Path::new(&made.command[0]).is_absolute());
    assert_eq!(made.command[1..], words[1..]);
    assert_eq!(made.key, r#"command 1 sh -c "echo $(touch x)\n" "" --"#);
    assert_eq!((made.outputs, made.declared, made.lower), (vec![], None, Lower::Nothing));
}

#[test]
fn a_program_or_a_script_that_looks_odd_stays_one_word() {
    let text = SMALL.replace("\"prog\"", "\"{size} $(x)\"");
    let (folder, picture) = folder();
    let made = make(&check::parse(&text).unwrap(), &[picture], &[], folder.path()).unwrap();
    assert_eq!(made.command[0], "/bin/1024 $(x)");
}

fn built_in(name: &str) -> Preset {
    let (presets, problems) = crate::presets::Presets::load(Path::new("/no/such/home"));
    assert_eq!(problems, []);
    presets.get(name).unwrap().clone()
}

#[test]
fn a_real_program_gets_every_word_as_it_was_given() {
    let words = ["%s\\0", "$(touch x)", "-n", "a b\n", "'\"`", "\u{1F600}", "", "*", "--help"];
    let given: Vec<PathBuf> = std::iter::once("printf").chain(words).map(PathBuf::from).collect();
    let made = built_in("command").make(&given, &[], None).unwrap();
    let run = Command::new(&made.command[0]).args(&made.command[1..]).output().unwrap();
    assert!(run.status.success());
    let printed: Vec<&[u8]> = run.stdout.split(|byte| *byte == 0).collect();
    let expected: Vec<&[u8]> = words[1..].iter().chain(&[""]).map(|word| word.as_bytes()).collect();
    assert_eq!(printed, expected);
}

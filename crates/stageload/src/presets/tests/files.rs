use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use image::ImageFormat;
use proptest::prelude::*;

use super::{Everywhere, Order, SMALL, check, write_picture};
use crate::presets::{Kind, Preset, Presets, Problem, problem};

const EXAMPLES: [&str; 3] = [
    include_str!("../../../presets/examples/mflux.toml"),
    include_str!("../../../presets/examples/pixal3d.cpp.toml"),
    include_str!("../../../presets/examples/stable-diffusion.cpp.toml"),
];

/// A home with these files in its folder of presets.
fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Presets, Vec<Problem>) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("presets")).unwrap();
    for (name, text) in files {
        fs::write(home.path().join("presets").join(name), text).unwrap();
    }
    let (presets, problems) = Presets::load(home.path());
    (home, presets, problems)
}

fn problem_of(text: &str) -> String {
    let (home, presets, problems) = home(&[("my.toml", text)]);
    assert_eq!(presets.iter().count(), 4, "a bad file stops nothing");
    assert_eq!(problems.len(), 1, "{text}");
    problems[0].to_string().replace(&home.path().display().to_string(), "HOME")
}

/// Files and folders for every parameter that wants one, and a value for each that needs one.
fn values(preset: &Preset, folder: &Path) -> Vec<(String, String)> {
    let value = |name: &str, kind: &Kind, default: &Option<String>| match kind {
        Kind::File => Some(folder.join("in.png").display().to_string()),
        Kind::Folder => Some(folder.display().to_string()),
        Kind::Text if default.is_none() => Some(format!("a \"cat\"\n$(x) {name}")),
        _ => None,
    };
    let params = preset.params().iter();
    params
        .filter_map(|one| Some((one.name.clone(), value(&one.name, &one.kind, &one.default)?)))
        .collect()
}

#[test]
fn every_built_in_preset_and_example_makes_a_job_and_its_ladder_ends() {
    let (presets, problems) = Presets::load(Path::new("/no/such/home"));
    assert_eq!(problems, []);
    let examples = EXAMPLES.map(|text| check::parse(text).unwrap());
    for preset in presets.iter().chain(&examples) {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.png");
        image::RgbImage::new(64, 64).save(&input).unwrap();
        for needed in ["generate_mps.py", "tools/run_pixal3d_estimated.py", "build/trellis-cli"] {
            let path = folder.path().join(needed);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let set = values(preset, folder.path());
        let inputs = vec![input; preset.inputs().least];
        let output = (preset.outputs().count() > 0).then_some(folder.path());
        let order = Order { inputs: &inputs, set: &set, output, ..Order::default() };
        let made = preset.make_order(&order, &Everywhere).unwrap();
        preset.preflight(&made.command, &made.preset_use(preset), &Everywhere).unwrap();
        for (name, value) in
            made.values.iter().filter(|(name, _)| ["prompt", "seed"].contains(&name.as_str()))
        {
            let has = |word: &&OsString| word.to_string_lossy().ends_with(value.as_str());
            assert_eq!(made.command.iter().filter(has).count(), 1, "{} {name}", preset.name());
        }
        let mut lower = made.values.clone();
        let mut rungs = 0;
        while let Some((words, next)) = preset.next_lower(&lower) {
            assert!(words.contains(" instead of "), "{words}");
            lower = next;
            rungs += 1;
        }
        assert!(rungs > 0 || preset.name() == "command", "{}", preset.name());
    }
}

#[test]
fn the_preset_that_the_manual_shows_makes_a_job() {
    let manual = include_str!("../../../presets/README.md");
    let text = manual.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let preset = check::parse(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.png");
    write_picture(&input, ImageFormat::Png);
    let (set, inputs) = (values(&preset, folder.path()), [input.clone()]);
    let output = Some(folder.path());
    let order = Order { inputs: &inputs, set: &set, output, ..Order::default() };
    let made = preset.make_order(&order, &Everywhere).unwrap();
    let weights = made.values["weights"].clone();
    let weights = format!("--weights={weights}");
    let words = ["/bin/upscale", input.to_str().unwrap(), "--factor=4", "--tiles", &weights];
    assert_eq!(made.command[..5], words.map(OsString::from));
    assert_eq!(made.outputs, [folder.path().join("in.large.png")]);
    let keys =
        ["name", "about", "version", "install", "command", "env", "requires", "busy", "disk"];
    let tables = ["inputs", "params", "outputs", "stages", "exit_codes", "need", "ladder"];
    for key in keys.iter().chain(&tables) {
        assert!(manual.contains(&format!("`{key}`")), "the manual says nothing of {key}");
    }
}

#[test]
fn the_mesh_preset_goes_from_the_fine_grid_to_the_quick_one_and_no_further() {
    let (presets, _) = Presets::load(Path::new("/no/such/home"));
    let mesh = presets.get("mesh").unwrap();
    let values = BTreeMap::from([("grid".to_owned(), "1024".to_owned())]);
    let (words, lower) = mesh.next_lower(&values).unwrap();
    assert_eq!(words, "the quick grid (grid 512 instead of 1024)");
    assert_eq!(mesh.next_lower(&lower), None);
    assert_eq!(mesh.exit_means(65), Some("no usable picture, or no subject in it"));
    assert_eq!(mesh.exit_means(1), None);
    assert!(mesh.stage_watch().is_none(), "the worker tells its stages itself");
}

#[test]
fn the_stages_of_pixal3d_are_read_from_its_output() {
    let (presets, _) = Presets::load(Path::new("/no/such/home"));
    let preset = presets.get("pixal3d").unwrap();
    let mut watch = preset.stage_watch().unwrap();
    let output = [
        "[Pipeline] Loading TencentARC/Pixal3D",
        "[Input] cup.png",
        "[MoGe] fov 0.6",
        "Sampling sparse structure (proj):   0%|          | 0/12\rSampling sparse structure (proj):   8%|8",
        "Sampling shape SLat (proj):   0%|",
        "Sampling shape SLat (proj): 100%|",
        "Sampling HR shape SLat (proj, 1024):   0%|",
        "Sampling texture SLat (proj):   0%|",
        "[Mesh] 4000000 vertices",
        "[Export] remesh",
        "[Done] GLB saved to cup.glb",
    ];
    let told: Vec<_> =
        output.iter().filter_map(|line| watch.feed(line).map(str::to_owned)).collect();
    assert_eq!(told, preset.stages());
}

#[test]
fn a_file_of_the_users_replaces_the_built_in_preset_of_its_name() {
    let mine = SMALL.replace("\"small\"", "\"mesh\"");
    let (_home, presets, problems) =
        home(&[("a.toml", &mine), ("b.toml", SMALL), ("notes.txt", "x"), (".c.toml", "x")]);
    assert_eq!(problems, []);
    assert_eq!(presets.get("mesh").unwrap().about(), "a test's");
    let (home, _, problems) = home(&[("a.toml", SMALL), ("b.toml", SMALL)]);
    let told = problems[0].to_string().replace(&home.path().display().to_string(), "HOME");
    let two = "HOME/presets/b.toml, name: HOME/presets/a.toml has a preset \"small\" too; this";
    assert!(told.starts_with(two) && problems.len() == 1, "{told}");
    let names: Vec<_> = presets.iter().map(Preset::name).collect();
    assert_eq!(names, ["command", "mesh", "pixal3d", "qwen-image", "small"]);
}

#[test]
fn a_file_that_is_wrong_is_told_by_line_and_key() {
    let wrong = |from: &str, to: &str| problem_of(&SMALL.replace(from, to));
    let left = "; this preset is left out until the file is mended";
    let table = [
        (
            wrong("learns = false", "lerns = false"),
            "HOME/presets/my.toml, line 22, lerns: unknown field `lerns`, expected one of `name`, `type`, \
             `default`, `min`, `max`, `step`, `choices`, `about`, `learns`",
        ),
        (
            wrong("max = 99", "max = 'many'"),
            "HOME/presets/my.toml, line 20, max: the bound is not of the parameter's type",
        ),
        (
            wrong("default = 7", "default = 100"),
            "HOME/presets/my.toml, line 21, default: \"seed\": it must be a whole number from 0 to 99",
        ),
        (
            wrong("--size={size}", "--size={sise}"),
            "HOME/presets/my.toml, line 6, command: there is no parameter \"sise\"; did you mean size?",
        ),
        (
            wrong("set = { size = 512 }", "set = { size = 500 }"),
            "HOME/presets/my.toml, line 43, set: size: it must be 1024, 768 or 512",
        ),
        (
            wrong("peak = \"1G\"", "peak = \"1X\""),
            "HOME/presets/my.toml, line 39, peak: not a size: \"1X\" (examples: 8G, 512M, 1.5G)",
        ),
        (
            wrong("    [inputs]", "    busy = ['(']\n    [inputs]"),
            "HOME/presets/my.toml, line 7, busy: not a regular expression: unclosed group",
        ),
        (
            wrong("\"small\"", "\"Small one\""),
            "HOME/presets/my.toml, line 2, name: a name is made of",
        ),
        (
            wrong("\"{stem}-", "\"../{stem}-"),
            "HOME/presets/my.toml, line 29, name: it is a name in",
        ),
        (
            wrong("{stem}-{seed}", "{stem}-{loud}"),
            "HOME/presets/my.toml, line 29, name: {loud} cannot",
        ),
        (wrong("    version = 2\n", ""), "HOME/presets/my.toml, line 1: missing field `version`"),
        (
            wrong("name = \"seed\"", "name = \"size\""),
            "HOME/presets/my.toml, line 16, name: \"size\" is taken",
        ),
        (
            wrong("name = \"loud\"", "name = \"stem\""),
            "HOME/presets/my.toml, line 24, name: \"stem\" is taken",
        ),
        (wrong("about = \"chance\"", "about = \"chance"), "HOME/presets/my.toml, line 23"),
    ];
    for (told, begins) in table {
        assert!(told.starts_with(begins) && told.ends_with(left), "{told}\n{begins}");
    }
}

#[test]
fn what_does_not_hold_together_is_told() {
    let head = "name='x'\nabout=''\nversion=1\n";
    let table = [
        ("command=[]", "line 4, command: its first word is the program's"),
        ("command=[{if='a', words=[]}]", "line 4, command: its first word is the program's"),
        ("command=['{inputs}']", "line 4, command: its first word is the program's"),
        (
            "command=['a', 3]",
            "line 4, command: invalid type: integer `3`, expected a word in quotes",
        ),
        ("command=['a', '{input}']", "line 4, command: there may be no input for {input}; put"),
        ("command=['a', '{output}']", "line 4, command: there is no output for {output}; declare"),
        ("command=['a', 'x{inputs}']", "line 4, command: {inputs} is a word by itself"),
        ("command=['a', '{b']", "line 4, command: the brace in \"{b\" is not closed"),
        ("command=['a', {if='b', unless='c', words=[]}]", "have either `if` or `unless`"),
        ("command=['a', {if='b', words=['c']}]", "there is no parameter \"b\""),
        ("command=['a', {if='b', word=['c']}]", "unknown field `word`"),
        ("command=['a', \"b\\u0000\"]", "line 4, command: a word cannot have a NUL character"),
        ("command=['a']\nenv={'a=b'='c'}", "env: \"a=b\" cannot be the name of a variable"),
        ("command=['a']\nenv={a=\"\\u0000\"}", "env: the value of \"a\" has a NUL character"),
        ("command=['a']\nrequires=['{b}']", "line 5, requires: there is no parameter \"b\""),
        ("command=['a']\n[exit_codes]\nfive='x'", "line 6, five: an exit code is a number"),
        (
            "command=['a']\n[stages]\nnames=['b']\nlines=[{stage='c', line='d'}]",
            "\"c\" is none of the names; they are b",
        ),
        ("command=['a']\n[[need]]\npeak='1G'\nstage='c'", "there is no stage \"c\""),
        ("command=['a']\n[inputs]\nkind='image'\nleast=2\nmost=1", "most: it is below least"),
        (
            "command=['a']\n[[params]]\nname='b'\ntype='text'\nmin=1\nabout=''",
            "line 8, min: only int",
        ),
        ("command=['a']\n[[params]]\nname='b'\ntype='choice'\nabout=''", "has choices"),
        (
            "command=['a']\n[[params]]\nname='b'\ntype='int'\nstep=0\nabout=''",
            "line 8, step: it must be above zero",
        ),
        (
            "command=['a']\n[[params]]\nname='b'\ntype='int'\nmin=2\nmax=1\nabout=''",
            "max: it is below min",
        ),
    ];
    for (tail, told) in table {
        let problem = problem_of(&format!("{head}{tail}"));
        assert!(problem.contains(told), "{tail}\n{problem}");
    }
}

proptest! {
    #[test]
    fn no_file_stops_the_program(at in 0..SMALL.len(), length in 0..40usize, text in any::<String>()) {
        let at = (0..=at).rev().find(|at| SMALL.is_char_boundary(*at)).unwrap();
        let end = (at + length).min(SMALL.len());
        let odd = [&SMALL[..at], &text, SMALL.get(end..).unwrap_or_default()].concat();
        if let Err(flaw) = check::parse(&odd) {
            let problem = problem(Path::new("odd.toml"), &odd, flaw);
            prop_assert!(!problem.to_string().contains('\n'), "{problem}");
            prop_assert!(problem.line.is_none_or(|line| line <= odd.lines().count() + 1));
        }
    }
}

#[test]
fn what_cannot_be_read_is_a_problem_too() {
    let (home, presets, problems) = home(&[("big.toml", &"#".repeat(2 << 20)), ("odd.toml", "")]);
    assert_eq!((presets.iter().count(), problems.len()), (4, 2));
    assert!(problems[0].why.starts_with("cannot read it: "), "{}", problems[0]);
    fs::write(home.path().join("presets/odd.toml"), [0xff, 0xfe]).unwrap();
    fs::create_dir(home.path().join("presets/folder.toml")).unwrap();
    let (_, problems) = Presets::load(home.path());
    let files: Vec<PathBuf> = problems.into_iter().map(|one| one.file).collect();
    let names = ["big.toml", "folder.toml", "odd.toml"];
    assert_eq!(files, names.map(|name| home.path().join("presets").join(name)));
}

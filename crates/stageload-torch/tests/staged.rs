//! Staged models as a pipeline meets them.
#![expect(clippy::unwrap_used, reason = "a test")]

use EventKind::{Load, Release, Stage};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stageload_core::{Bytes, Event, EventKind};
use stageload_torch::{Error, Residency, Result, StagedModels, Weights};
use tch::{Device, Kind, Tensor};

const FLOATS: i64 = 1 << 16;

type Log = Rc<RefCell<Vec<Event>>>;

#[expect(clippy::unnecessary_wraps, reason = "loaders may fail")]
fn noisy(device: Device) -> Result<Weights> {
    // A loader that draws, as every random initialisation does.
    let w = Tensor::randn([FLOATS], (Kind::Float, device));
    Ok(Weights::from_iter([("w".into(), w)]))
}

fn models(residency: Residency) -> (StagedModels, Log) {
    let log = Log::default();
    let sink = Rc::clone(&log);
    let models = StagedModels::new(residency, Device::Cpu)
        .model("encoder", noisy)
        .model("decoder", noisy)
        .stage("encode", ["encoder"])
        .stage("denoise", [])
        .stage("decode", ["decoder"])
        .events(Box::new(move |e| sink.borrow_mut().push(e.clone())));
    (models, log)
}

/// The random generator is the process's: tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn draw() -> Vec<f32> {
    Vec::try_from(Tensor::randn([16], (Kind::Float, Device::Cpu))).unwrap()
}

/// A seeded run that draws noise in each stage and uses its models in between.
fn run(residency: Residency) -> (Vec<f32>, Log) {
    let (mut models, log) = models(residency);
    tch::manual_seed(7);
    let mut noise = Vec::new();
    for (stage, model) in
        [("encode", Some("encoder")), ("denoise", None), ("decode", Some("decoder"))]
    {
        models.enter(stage).unwrap();
        if let Some(model) = model {
            models.get(model).unwrap();
        }
        noise.extend(draw());
    }
    models.close();
    (noise, log)
}

fn bytes(log: &Log, kinds: &[EventKind]) -> Bytes {
    log.borrow().iter().filter(|e| kinds.contains(&e.kind)).filter_map(|e| e.nbytes).sum()
}

#[test]
fn staged_and_eager_runs_draw_the_same_noise_bit_for_bit() {
    let _turn = alone();
    assert_eq!(run(Residency::Staged).0, run(Residency::Eager).0);
}

#[test]
fn without_the_models_the_noise_is_the_same_too() {
    let _turn = alone();
    tch::manual_seed(7);
    let plain: Vec<f32> = (0..3).flat_map(|_| draw()).collect();
    assert_eq!(run(Residency::Staged).0, plain);
}

#[test]
fn all_that_was_loaded_is_released_in_both_modes() {
    let _turn = alone();
    for residency in [Residency::Staged, Residency::Eager] {
        let (_, log) = run(residency);
        let loaded = bytes(&log, &[EventKind::Load, EventKind::Reload]);
        assert_eq!(loaded, Bytes(2 * 4 * FLOATS as u64));
        assert_eq!(bytes(&log, &[EventKind::Release]), loaded);
    }
}

#[test]
fn only_the_current_stages_models_are_in_memory() {
    let _turn = alone();
    let (mut models, _) = models(Residency::Staged);
    models.enter("encode").unwrap();
    assert!(models.loaded().is_empty(), "a model loads when it is asked for, not before");
    models.get("encoder").unwrap();
    assert_eq!(models.loaded(), ["encoder"]);
    models.enter("denoise").unwrap();
    assert!(models.loaded().is_empty());
}

#[test]
fn an_eager_registry_keeps_every_model_to_the_end() {
    let _turn = alone();
    let (mut models, _) = models(Residency::Eager);
    models.enter("encode").unwrap();
    models.enter("decode").unwrap();
    assert_eq!(models.loaded(), ["decoder", "encoder"]);
}

#[test]
fn a_stage_is_said_before_the_releases_it_sets_off() {
    let _turn = alone();
    let (_, log) = run(Residency::Staged);
    let kinds: Vec<EventKind> = log.borrow().iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [Stage, Load, Stage, Release, Stage, Load, Release]);
}

#[test]
fn a_handle_on_a_released_model_is_an_error_that_names_the_model_and_the_stage() {
    let _turn = alone();
    let (mut models, _) = models(Residency::Staged);
    models.enter("encode").unwrap();
    let handle = models.handle("encoder").unwrap();
    models.weights(&handle).unwrap().get("w").unwrap();
    models.enter("denoise").unwrap();
    let error = models.weights(&handle).unwrap_err();
    assert!(
        matches!(&error, Error::Released { name, stage: Some(s) } if name == "encoder" && s == "denoise")
    );
    assert!(error.to_string().contains("\"encoder\" was released when entering stage \"denoise\""));
}

#[test]
fn a_handle_from_before_a_reload_stays_an_error() {
    let _turn = alone();
    let (mut models, log) = models(Residency::Staged);
    models.enter("encode").unwrap();
    let old = models.handle("encoder").unwrap();
    models.enter("denoise").unwrap();
    models.enter("encode").unwrap();
    let new = models.handle("encoder").unwrap();
    assert!(models.weights(&old).is_err());
    assert!(models.weights(&new).is_ok());
    assert!(log.borrow().iter().any(|e| e.kind == EventKind::Reload));
}

#[test]
fn a_tensor_cloned_out_of_a_model_stays_usable_and_the_release_says_what_it_keeps() {
    let _turn = alone();
    let (mut models, log) = models(Residency::Staged);
    models.enter("encode").unwrap();
    let kept = models.get("encoder").unwrap().get("w").unwrap().shallow_clone();
    models.enter("denoise").unwrap();
    assert!(kept.sum(Kind::Float).double_value(&[]).is_finite());
    let log = log.borrow();
    let release = log.iter().find(|e| e.kind == EventKind::Release).unwrap();
    assert!(release.note.as_ref().unwrap().starts_with("kept=262144"), "{release:?}");
}

#[test]
fn a_load_outside_its_stage_is_marked() {
    let _turn = alone();
    let (mut models, log) = models(Residency::Staged);
    models.enter("denoise").unwrap();
    models.get("decoder").unwrap();
    assert_eq!(log.borrow()[1].note.as_deref(), Some("outside_stage"));
}

#[test]
fn unknown_names_are_errors_that_list_the_known_ones() {
    let _turn = alone();
    let (mut models, _) = models(Residency::Staged);
    let error = models.enter("encod").unwrap_err().to_string();
    assert!(error.contains("decode, denoise, encode"), "{error}");
    let error = models.get("vae").unwrap_err().to_string();
    assert!(error.contains("decoder, encoder"), "{error}");
}

#[test]
fn a_failed_load_is_an_error_and_can_be_tried_again() {
    let _turn = alone();
    let tries = Rc::new(RefCell::new(0));
    let counter = Rc::clone(&tries);
    let mut models = StagedModels::new(Residency::Staged, Device::Cpu)
        .model("flaky", move |device| {
            *counter.borrow_mut() += 1;
            if *counter.borrow() == 1 {
                Err(Error::Weights("torn file".into()))
            } else {
                noisy(device)
            }
        })
        .stage("only", ["flaky"]);
    models.enter("only").unwrap();
    let error = models.get("flaky").unwrap_err().to_string();
    assert!(error.contains("cannot load \"flaky\"") && error.contains("torn file"), "{error}");
    models.get("flaky").unwrap();
}

#[test]
fn releasing_gives_the_memory_back_to_the_system() {
    let _turn = alone();
    let big = |device| {
        let w = Tensor::ones([48 << 20], (Kind::Float, device));
        Ok(Weights::from_iter([("w".into(), w)]))
    };
    let mut models = StagedModels::new(Residency::Staged, Device::Cpu)
        .model("big", big)
        .stage("use", ["big"])
        .stage("after", []);
    models.enter("use").unwrap();
    models.get("big").unwrap();
    let with = anonymous_kb();
    models.enter("after").unwrap();
    let without = anonymous_kb();
    if let (Some(with), Some(without)) = (with, without) {
        // Elsewhere than on Linux the end-to-end tests see it in the trace.
        assert!(with - without > 180 << 10, "{with} kB with the model, {without} kB without");
    }
}

/// Anonymous memory of this process, where the system tells it this way.
fn anonymous_kb() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_pause_stands_between_what_was_released_and_what_is_loaded_and_changes_no_bit() {
    let _alone = alone();
    let (plain, _) = run(Residency::Staged);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pause");
    std::fs::write(&file, "").unwrap();
    let (models, log) = models(Residency::Staged);
    let mut models = models.pause_at(&file);
    let waker = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::remove_file(file).unwrap();
    });
    tch::manual_seed(7);
    let mut noise = Vec::new();
    for (stage, model) in
        [("encode", Some("encoder")), ("denoise", None), ("decode", Some("decoder"))]
    {
        models.enter(stage).unwrap();
        if let Some(model) = model {
            models.get(model).unwrap();
        }
        noise.extend(draw());
    }
    waker.join().unwrap();
    assert_eq!(noise, plain);
    let said: Vec<_> = log.borrow().iter().map(|e| (e.kind, e.note.clone())).take(4).collect();
    let mark = |note: &str| (EventKind::Mark, Some(note.to_owned()));
    assert_eq!(said, [(Stage, None), mark("paused"), mark("resumed"), (Load, None)]);
}

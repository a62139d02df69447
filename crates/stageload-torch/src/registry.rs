//! The registry: which models a pipeline has, which stage needs which, and what is in memory now.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use stageload_core::{Bytes, Event, EventKind, PAUSE_ENV, PAUSED, RESUMED};
use tch::Device;

use crate::events::EventSink;
use crate::{Error, Result, Weights, empty_device_cache, preserved_rng};

/// Between two looks whether the pause is over.
const PAUSE_LOOK: Duration = Duration::from_millis(100);

type Loader = Box<dyn Fn(Device) -> Result<Weights>>;

/// When models are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// Only the current stage's models.
    Staged,
    /// All of them, from the first stage to the end: what pipelines do without this crate.
    Eager,
}

/// A model as a pipeline may keep it: it stays valid while the model does, and is an error after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    name: String,
    load: u32,
}

/// A pipeline's models; only those the current stage lists stay in memory.
///
/// Weights are borrowed from the registry, so the compiler refuses to enter a stage while a model
/// is in use; a [`Handle`] may be kept across stages and answers with an error once its model is
/// released. A tensor cloned out of the weights keeps its own memory alive, which the release
/// event then says.
pub struct StagedModels {
    residency: Residency,
    device: Device,
    slots: BTreeMap<String, Slot>,
    stages: BTreeMap<String, Vec<String>>,
    current: Option<String>,
    sink: EventSink,
    pause: Option<PathBuf>,
}

struct Slot {
    loader: Loader,
    weights: Option<Weights>,
    loads: u32,
    released_at: Option<String>,
}

impl fmt::Debug for StagedModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedModels")
            .field("residency", &self.residency)
            .field("current", &self.current)
            .field("loaded", &self.loaded())
            .finish_non_exhaustive()
    }
}

impl StagedModels {
    /// A registry without models; loaders put their tensors on `device`.
    pub fn new(residency: Residency, device: Device) -> Self {
        Self {
            residency,
            device,
            slots: BTreeMap::new(),
            stages: BTreeMap::new(),
            current: None,
            sink: Box::new(|_| {}),
            pause: std::env::var_os(PAUSE_ENV).map(PathBuf::from),
        }
    }

    /// Adds a model and the function that loads it.
    #[must_use]
    pub fn model(
        mut self,
        name: &str,
        loader: impl Fn(Device) -> Result<Weights> + 'static,
    ) -> Self {
        let slot = Slot { loader: Box::new(loader), weights: None, loads: 0, released_at: None };
        self.slots.insert(name.into(), slot);
        self
    }

    /// Adds a stage and the models it needs.
    #[must_use]
    pub fn stage<const N: usize>(mut self, stage: &str, models: [&str; N]) -> Self {
        self.stages.insert(stage.into(), models.map(String::from).to_vec());
        self
    }

    /// Sends events to `sink`.
    #[must_use]
    pub fn events(mut self, sink: EventSink) -> Self {
        self.sink = sink;
        self
    }

    /// Pauses where a stage begins while there is a file of this name, and not as `$STAGELOAD_PAUSE` says.
    #[must_use]
    pub fn pause_at(mut self, file: impl Into<PathBuf>) -> Self {
        self.pause = Some(file.into());
        self
    }

    /// Begins a stage: says so, and gives back every model that the stage does not list. Stands still
    /// then for as long as somebody wants a pause.
    ///
    /// # Errors
    /// When there is no such stage, when the stage lists a model that there is not, or (eager,
    /// first stage) when a model cannot be loaded.
    pub fn enter(&mut self, stage: &str) -> Result<()> {
        let needed = self.needed(stage)?;
        self.current = Some(stage.into());
        self.emit(&Event::new(EventKind::Stage));
        match self.residency {
            Residency::Staged => self.release_all_but(&needed),
            Residency::Eager => {}
        }
        self.pause_if_asked();
        if self.residency == Residency::Eager {
            self.load_all()?;
        }
        Ok(())
    }

    /// Stands still while whoever runs this job wants that. What the stage before held is released, and
    /// what this one needs is not loaded yet, so this is when least is in memory.
    fn pause_if_asked(&mut self) {
        let Some(asked) = self.pause.clone().filter(|file| file.exists()) else { return };
        let mark =
            |note: &str| Event { note: Some(note.to_owned()), ..Event::new(EventKind::Mark) };
        self.emit(&mark(PAUSED));
        while asked.exists() {
            std::thread::sleep(PAUSE_LOOK);
        }
        self.emit(&mark(RESUMED));
    }

    /// A handle on a model, loaded now if it is not.
    ///
    /// # Errors
    /// When there is no such model or it cannot be loaded.
    pub fn handle(&mut self, name: &str) -> Result<Handle> {
        self.ensure_loaded(name)?;
        Ok(Handle { name: name.into(), load: self.slot(name)?.loads })
    }

    /// The weights behind a handle.
    ///
    /// # Errors
    /// [`Error::Released`] when the model was released since the handle was taken.
    pub fn weights(&self, handle: &Handle) -> Result<&Weights> {
        let slot = self.slot(&handle.name)?;
        let live = slot.weights.as_ref().filter(|_| slot.loads == handle.load);
        live.ok_or_else(|| Error::Released {
            name: handle.name.clone(),
            stage: slot.released_at.clone(),
        })
    }

    /// Loads a model if it is not there and borrows its weights.
    ///
    /// # Errors
    /// When there is no such model or it cannot be loaded.
    pub fn get(&mut self, name: &str) -> Result<&Weights> {
        let handle = self.handle(name)?;
        self.weights(&handle)
    }

    /// Gives one model's memory back; nothing happens when it is not loaded.
    ///
    /// # Errors
    /// When there is no such model.
    pub fn release(&mut self, name: &str) -> Result<()> {
        self.slot(name)?;
        self.release_these(&[name.into()]);
        Ok(())
    }

    /// Gives every model's memory back: the end of the run.
    pub fn close(&mut self) {
        self.release_all_but(&[]);
    }

    /// Says something in the trace.
    pub fn mark(&mut self, note: &str) {
        let mut event = Event::new(EventKind::Mark);
        event.note = Some(note.into());
        self.emit(&event);
    }

    /// Names of the models in memory now.
    pub fn loaded(&self) -> Vec<&str> {
        let live = self.slots.iter().filter(|(_, slot)| slot.weights.is_some());
        live.map(|(name, _)| name.as_str()).collect()
    }

    /// Where loaders put their tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    fn needed(&self, stage: &str) -> Result<Vec<String>> {
        let needed = self.stages.get(stage).ok_or_else(|| Error::UnknownStage {
            stage: stage.into(),
            known: names(&self.stages),
        })?;
        needed.iter().try_for_each(|name| self.slot(name).map(drop))?;
        Ok(needed.clone())
    }

    fn slot(&self, name: &str) -> Result<&Slot> {
        self.slots
            .get(name)
            .ok_or_else(|| Error::UnknownModel { name: name.into(), known: names(&self.slots) })
    }

    fn load_all(&mut self) -> Result<()> {
        let names: Vec<String> = self.slots.keys().cloned().collect();
        names.iter().try_for_each(|name| self.ensure_loaded(name))
    }

    fn ensure_loaded(&mut self, name: &str) -> Result<()> {
        if self.slot(name)?.weights.is_some() {
            return Ok(());
        }
        let start = Instant::now();
        let slot = &self.slots[name];
        let weights = preserved_rng(|| (slot.loader)(self.device))
            .map_err(|e| Error::Load { name: name.into(), source: Box::new(e) })?;
        let first = slot.loads == 0;
        let mut event = Event::new(if first { EventKind::Load } else { EventKind::Reload });
        event.name = Some(name.into());
        event.nbytes = Some(weights.nbytes());
        event.seconds = Some(seconds_since(start));
        event.note = self.is_outside(name).then(|| "outside_stage".into());
        if let Some(slot) = self.slots.get_mut(name) {
            slot.weights = Some(weights);
            slot.loads += 1;
        }
        self.emit(&event);
        Ok(())
    }

    /// A load that the current stage does not list; eager loads are all in the first stage.
    fn is_outside(&self, name: &str) -> bool {
        let listed = |stage: &String| self.stages[stage].iter().any(|n| n == name);
        self.residency == Residency::Staged && self.current.as_ref().is_some_and(|s| !listed(s))
    }

    fn release_all_but(&mut self, needed: &[String]) {
        let loaded = self.loaded().into_iter().map(String::from);
        let unneeded: Vec<String> = loaded.filter(|name| !needed.contains(name)).collect();
        self.release_these(&unneeded);
    }

    /// Drops models and says so once their memory is back: whoever takes a look at the event must
    /// not still see the old model.
    fn release_these(&mut self, names: &[String]) {
        let start = Instant::now();
        let mut events: Vec<Event> = names.iter().filter_map(|n| self.drop_weights(n)).collect();
        if self.residency == Residency::Staged || !events.is_empty() {
            empty_device_cache();
        }
        for event in &mut events {
            event.seconds = Some(seconds_since(start));
            self.emit(event);
        }
    }

    fn drop_weights(&mut self, name: &str) -> Option<Event> {
        let slot = self.slots.get_mut(name)?;
        let weights = slot.weights.take()?;
        slot.released_at.clone_from(&self.current);
        let mut event = Event::new(EventKind::Release);
        event.name = Some(name.into());
        event.nbytes = Some(weights.nbytes());
        let kept = weights.release();
        event.note =
            (kept > Bytes::ZERO).then(|| format!("kept={} by tensors cloned out of it", kept.0));
        Some(event)
    }

    fn emit(&mut self, event: &Event) {
        let mut event = event.clone();
        event.stage.clone_from(&self.current);
        (self.sink)(&event);
    }
}

impl Drop for StagedModels {
    fn drop(&mut self) {
        self.close();
    }
}

fn seconds_since(start: Instant) -> f64 {
    (start.elapsed().as_secs_f64() * 1e3).round() / 1e3
}

fn names<T>(map: &BTreeMap<String, T>) -> String {
    map.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

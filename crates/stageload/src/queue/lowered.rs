//! A job that the guard has stopped, with less.

use std::path::{Path, PathBuf};

use crate::presets::{InPath, Made, Order, Presets};
use crate::wire::Spec;

/// The job with its preset's next lower setting, and what that is; in words why there is none.
pub(super) fn lowered(home: &Path, spec: &Spec) -> Result<(String, Spec), String> {
    let nothing = "stopped by the guard, and nothing lower is known";
    let used = spec.preset.as_ref().ok_or(nothing)?;
    let presets = Presets::load(home).0;
    let preset = presets.get(&used.name).map_err(|refusal| refusal.to_string())?;
    let (words, values) = preset.next_lower(&used.values).ok_or(nothing)?;
    let set: Vec<(String, String)> = values.into_iter().collect();
    let order = Order {
        inputs: &used.inputs,
        set: &set,
        output: used.outputs.first().map(PathBuf::as_path),
        // What the attempt before left is its own.
        overwrite: true,
        may_lower: true,
    };
    let made = preset.make_order(&order, &InPath).map_err(|refusal| refusal.to_string())?;
    let preset = Some(made.preset_use(preset));
    let Made { command, key, declared, lower, .. } = made;
    Ok((words, Spec { command, preset, key, declared, lower, ..spec.clone() }))
}

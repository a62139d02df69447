//! `stageload presets`: what can be queued by name, and with which parameters.

use std::fmt::Write;

use serde_json::{Value, json};
use stageload::presets::{Kind, Param, Preset, Presets};
use stageload::queue::queue_home;

use crate::failure::Failure;
use crate::output;

/// Show what can be queued by name
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this one, with its parameters
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print JSON: a list
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<i32, Failure> {
    let (presets, problems) = Presets::load(&queue_home()?);
    for problem in &problems {
        output::log(&format!("preset: {problem}"));
    }
    let chosen: Vec<&Preset> = match &args.name {
        Some(name) => {
            vec![presets.get(name).map_err(|refusal| Failure::data(refusal.to_string()))?]
        }
        None => presets.iter().collect(),
    };
    output::out(&if args.json {
        let list: Vec<Value> = chosen.iter().map(|preset| as_json(preset)).collect();
        serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
    } else if args.name.is_some() {
        chosen.iter().map(|preset| in_full(preset)).collect()
    } else {
        let line = |preset: &&Preset| format!("{:<12} {}", preset.name(), preset.about());
        chosen.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
    })?;
    Ok(0)
}

fn in_full(preset: &Preset) -> String {
    let mut text = format!("{}: {}\n", preset.name(), preset.about());
    for param in preset.params() {
        let default =
            param.default.as_ref().map_or_else(String::new, |it| format!(" (default {it})"));
        let _ = writeln!(text, "  --set {}={}{default}", param.name, values(param));
        let _ = writeln!(text, "      {}", param.about);
    }
    if !preset.stages().is_empty() {
        let _ = writeln!(text, "stages: {}", preset.stages().join(", "));
    }
    if !preset.install().is_empty() {
        let _ = writeln!(text, "program: {}", preset.install());
    }
    text
}

fn values(param: &Param) -> String {
    match &param.kind {
        Kind::Choice(choices) => choices.join("|"),
        kind => kind.name().to_uppercase(),
    }
}

fn as_json(preset: &Preset) -> Value {
    let param = |param: &Param| {
        let choices = if let Kind::Choice(choices) = &param.kind { Some(choices) } else { None };
        json!({
            "name": param.name,
            "about": param.about,
            "type": param.kind.name(),
            "choices": choices,
            "default": param.default,
        })
    };
    json!({
        "name": preset.name(),
        "about": preset.about(),
        "version": preset.version(),
        "install": preset.install(),
        "stages": preset.stages(),
        "params": preset.params().iter().map(param).collect::<Vec<_>>(),
    })
}

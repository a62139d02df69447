//! The stageload command: parses, runs one subcommand, ends with its exit code. What it does is in
//! the `stageload` library; what it prints goes through `output.rs`.

mod commands;
mod failure;
mod flags;
mod grid;
mod live;
mod output;
mod raster;
mod screen;
mod table;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use failure::Failure;

/// Runs heavy jobs on shared memory without letting the machine fall into swap.
#[derive(Debug, Parser)]
#[command(name = "stageload", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Guard(commands::guard::Args),
    Summary(commands::summary::Args),
    Replay(commands::replay::Args),
    Meter(commands::meter::Args),
    Mesh(commands::mesh::Args),
    Run(commands::queue::run::Args),
    Add(commands::queue::add::Args),
    Queue(commands::queue::list::Args),
    Show(commands::queue::show::Show),
    Log(commands::queue::show::Log),
    Stop(commands::queue::control::Stop),
    Pause(commands::queue::control::Pause),
    Resume(commands::queue::control::Resume),
    Retry(commands::queue::control::Retry),
    Move(commands::queue::control::Move),
    Clear(commands::queue::control::Clean),
    Edit(commands::queue::edit::Args),
    Doctor(commands::queue::doctor::Args),
    Watch(commands::queue::watch::Args),
    Presets(commands::queue::presets::Args),
    Engine(commands::queue::engine::Args),
    #[command(hide = true)]
    Supervise(commands::queue::engine::SuperviseArgs),
    #[command(hide = true)]
    StandBy(commands::stand_by::Args),
}

fn main() -> ExitCode {
    let result = match parse().command {
        Command::Guard(args) => commands::guard::run(args),
        Command::Summary(args) => commands::summary::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Meter(args) => commands::meter::run(&args),
        Command::Mesh(args) => commands::mesh::run(args),
        Command::Run(args) => commands::queue::run::run(args),
        Command::Add(args) => commands::queue::add::run(args),
        Command::Queue(args) => commands::queue::list::run(&args),
        Command::Show(args) => commands::queue::show::show(&args),
        Command::Log(args) => commands::queue::show::log(&args),
        Command::Stop(args) => commands::queue::control::stop(&args),
        Command::Pause(args) => commands::queue::control::pause(&args),
        Command::Resume(args) => commands::queue::control::resume(&args),
        Command::Retry(args) => commands::queue::control::retry(&args),
        Command::Move(args) => commands::queue::control::move_to(&args),
        Command::Edit(args) => commands::queue::edit::run(&args),
        Command::Doctor(args) => commands::queue::doctor::run(&args),
        Command::Clear(args) => commands::queue::control::clear(&args),
        Command::Watch(args) => commands::queue::watch::run(&args),
        Command::Presets(args) => commands::queue::presets::run(&args),
        Command::Engine(args) => commands::queue::engine::run(&args),
        Command::Supervise(args) => commands::queue::engine::run_supervise(&args),
        Command::StandBy(_) => commands::stand_by::run(),
    };
    let code = result.unwrap_or_else(|failure: Failure| {
        output::error(&failure.to_string());
        failure.exit_code()
    });
    output::drain();
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// clap's own parsing, with one thing more: which of the guard's flags were given at all.
fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    let given = matches.subcommand().map(|(_, given)| given);
    let has_guard_flags = given.is_some_and(flags::GuardFlags::are_given);
    let has_timeout = given.is_some_and(|given| flags::is_given(given, "start_timeout"));
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match &mut cli.command {
        Command::Mesh(args) => args.has_guard_flags = has_guard_flags,
        Command::Add(args) => args.has_timeout = has_timeout,
        _ => {}
    }
    cli
}

//! The stageload command: parses, runs one subcommand, ends with its exit code. What it does is in
//! the `stageload` library; what it prints goes through `output.rs`.

mod commands;
mod failure;
mod flags;
mod live;
mod output;
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
    Meter(commands::meter::Args),
    Mesh(commands::mesh::Args),
    #[command(hide = true)]
    StandBy(commands::stand_by::Args),
}

fn main() -> ExitCode {
    let result = match parse().command {
        Command::Guard(args) => commands::guard::run(args),
        Command::Summary(args) => commands::summary::run(&args),
        Command::Meter(args) => commands::meter::run(&args),
        Command::Mesh(args) => commands::mesh::run(args),
        Command::StandBy(_) => commands::stand_by::run(),
    };
    let code = result.unwrap_or_else(|failure: Failure| {
        output::error(&failure.to_string());
        failure.exit_code()
    });
    output::drain();
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// clap's own parsing, with one thing more: whether the guard's flags were given at all.
fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    let has_guard_flags =
        matches.subcommand().is_some_and(|(_, given)| flags::GuardFlags::are_given(given));
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Command::Mesh(args) = &mut cli.command {
        args.has_guard_flags = has_guard_flags;
    }
    cli
}

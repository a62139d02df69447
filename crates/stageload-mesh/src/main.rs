//! The worker process: one picture in, one mesh out, events to whoever started it.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use stageload_mesh::{Options, run};
use stageload_torch::EventFile;

fn main() -> ExitCode {
    let options = Options::parse();
    let mut events = EventFile::from_env();
    match run(&options, Box::new(move |event| events.emit(event))) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may be reading; the exit code says it too.
            let _lost = writeln!(std::io::stderr(), "stageload-mesh: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

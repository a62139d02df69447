//! The worker process: one picture in, one mesh out, events to whoever started it.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use stageload_mesh::{Options, run};
use stageload_torch::EventFile;

fn main() -> ExitCode {
    let options = Options::parse();
    let mut events = EventFile::from_env();
    let work = || run(&options, Box::new(move |event| events.emit(event)));
    // tch panics where libtorch throws (out of memory, an operation Metal lacks).
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            // Nobody may be reading; the exit code says it too.
            let _lost = writeln!(std::io::stderr(), "stageload-mesh: {error}");
            ExitCode::from(error.exit_code())
        }
        Err(_) => {
            let what = "stageload-mesh: it failed inside, as said above; please report it";
            let _lost = writeln!(std::io::stderr(), "{what}");
            ExitCode::from(70)
        }
    }
}

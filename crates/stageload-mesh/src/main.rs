//! The worker process: one picture in, one mesh out, events to whoever started it.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use stageload_mesh::{Options, run};
use stageload_torch::EventFile;

/// MKL picks its number of threads by the machine's load and its kernels by how memory is aligned,
/// so the same run could differ in the last bit. It reads these before its first call.
#[expect(unsafe_code, reason = "the environment is how MKL is told")]
fn reproducible() {
    for (name, value) in [("MKL_DYNAMIC", "FALSE"), ("MKL_CBWR", "AUTO,STRICT")] {
        // SAFETY: this is the process's first line; no other thread of ours reads the environment.
        unsafe { std::env::set_var(name, value) };
    }
}

fn main() -> ExitCode {
    reproducible();
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

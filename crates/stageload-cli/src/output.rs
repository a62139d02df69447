//! The only place that prints. A reader that went away (`stageload summary | head`) is no error.

use std::io::{self, IsTerminal, Write};

use stageload::utc_time;

/// Text for whoever asked for it.
pub(crate) fn out(text: &str) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}

/// A log line, stamped.
pub(crate) fn log(line: &str) {
    line_on_stderr(&format!("{} {line}\n", utc_time()));
}

/// Why the command failed.
pub(crate) fn error(text: &str) {
    line_on_stderr(&format!("stageload: {text}\n"));
}

/// Replaces the live line.
pub(crate) fn live(text: &str) {
    line_on_stderr(&format!("\r\x1b[2K{text}"));
}

/// Whether a live line can be seen.
pub(crate) fn has_live_line() -> bool {
    io::stderr().is_terminal()
}

fn line_on_stderr(text: &str) {
    io::stderr().lock().write_all(text.as_bytes()).ok();
}

//! What the system, or a process that names itself, may put into `/proc`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|raw: &[u8]| stageload::read_any_proc_file(raw));

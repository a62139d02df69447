//! The kernel's text: lines that read `Key:   123 kB`.

use stageload_core::Bytes;

/// The size behind `key:`; None where the line is missing or is no size.
pub(super) fn size(text: &[u8], key: &str) -> Option<Bytes> {
    size_in(value(text, key)?)
}

/// What stands behind `key:`, trimmed.
pub(super) fn value<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let line = |line: &'a [u8]| line.strip_prefix(key.as_bytes())?.strip_prefix(b":");
    text.split(|b| *b == b'\n').find_map(line).map(<[u8]>::trim_ascii)
}

/// `123 kB`, and as some drivers write it, `123 KiB`, `123 MiB` or plain bytes.
pub(super) fn size_in(text: &[u8]) -> Option<Bytes> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_ascii() {
        b"" => 1,
        b"kB" | b"KiB" => 1024,
        b"MiB" => 1024 * 1024,
        _ => return None,
    };
    number_in::<u64>(number)?.checked_mul(factor).map(Bytes)
}

pub(super) fn number_in<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

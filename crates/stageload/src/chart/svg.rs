//! Text that is safe inside of an SVG.

pub(super) fn points(run: &[(f64, f64)]) -> String {
    run.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Names come from the job, which may write anything.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // Which XML does not allow, not even as an entity.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

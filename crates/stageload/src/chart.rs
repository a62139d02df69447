//! Traces as a picture: footprint and swap over time with the stages behind, one panel a trace on
//! the same axes, so that two runs compare at a glance. SVG is text, so no drawing library.
//! Numbers come from `stageload_core::summarize`; how panels are laid out is below.

use std::fmt::Write;

use stageload_core::{Bytes, Reading, Record, StageUse, Summary, summarize};

/// Pixels. A panel is as wide as a README shows pictures.
const WIDTH: f64 = 960.0;
const PLOT_HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
/// Room above a plot for its title and the names of its stages, and below for the times.
const ABOVE: f64 = 74.0;
const BELOW: f64 = 46.0;
const PANEL: f64 = ABOVE + PLOT_HEIGHT + BELOW;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;

/// Readable for the colour-blind, and told apart by dash and fill as well.
const FOOTPRINT: &str = "#0b6bcb";
const SWAP: &str = "#c2410c";
const BANDS: [&str; 2] = ["#eef2f7", "#e0e7f0"];

const STYLE: &str = "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;\
fill:#334155}.title{font-size:17px;font-weight:600;fill:#0f172a}.small{font-size:12px;\
fill:#64748b}.stage{font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}";

/// An SVG of the given traces with their names.
pub fn chart(traces: &[(String, Vec<Record>)]) -> String {
    let panels: Vec<Panel<'_>> =
        traces.iter().map(|(name, records)| Panel::of(name, records)).collect();
    let axes = Axes::around(&panels);
    let height = PANEL * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        panel.draw(&mut svg, axes, PANEL * i as f64);
    }
    svg + "</svg>\n"
}

/// One trace.
struct Panel<'a> {
    name: &'a str,
    summary: Summary,
    samples: Vec<Reading>,
}

/// The scale that all panels share.
#[derive(Debug, Clone, Copy)]
struct Axes {
    seconds: f64,
    gb: f64,
    gb_step: f64,
}

impl Axes {
    fn around(panels: &[Panel<'_>]) -> Self {
        let most = panels.iter().map(Panel::most_gb).fold(0.0, f64::max);
        let longest = panels.iter().map(Panel::seconds).fold(0.0, f64::max);
        let gb_step = step(most / 5.0);
        let gb = ((most * 1.04 / gb_step).ceil() * gb_step).max(gb_step);
        Self { seconds: longest.max(0.001), gb, gb_step }
    }

    fn x(self, seconds: f64) -> f64 {
        LEFT + PLOT_WIDTH * (seconds / self.seconds).clamp(0.0, 1.0)
    }

    fn y(self, gb: f64) -> f64 {
        ABOVE + PLOT_HEIGHT * (1.0 - (gb / self.gb).clamp(0.0, 1.0))
    }
}

/// The nearest of 1, 2, 5 × 10^n that is not below `rough`: steps a reader counts in.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-3).log10().floor());
    let of_power = |factor: f64| factor * power;
    [1.0, 2.0, 5.0].map(of_power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

impl<'a> Panel<'a> {
    fn of(name: &'a str, records: &[Record]) -> Self {
        let sample = |record: &Record| match record {
            Record::Sample(reading) => Some(reading.clone()),
            _ => None,
        };
        let mut samples: Vec<Reading> = records.iter().filter_map(sample).collect();
        samples.sort_by(|a, b| a.t.total_cmp(&b.t));
        Self { name, summary: summarize(records), samples }
    }

    /// A trace may be the tail of a run, so its time begins with its first sample.
    fn begins(&self) -> f64 {
        self.samples.first().map_or(0.0, |sample| sample.t)
    }

    fn seconds(&self) -> f64 {
        let stages = self.summary.stages.last().map_or(0.0, |last| last.start + last.seconds);
        self.samples.last().map_or(0.0, |sample| sample.t).max(stages) - self.begins()
    }

    fn most_gb(&self) -> f64 {
        let held = self.summary.peak_footprint.map_or(0.0, Bytes::as_gb);
        self.samples.iter().filter_map(|s| self.swap_gb(s)).fold(held, f64::max)
    }

    /// Swap over its use at the start; what others left there before is not this run's.
    fn swap_gb(&self, sample: &Reading) -> Option<f64> {
        let start = self.summary.swap?.start;
        Some((sample.swap_used?.as_gb() - start.as_gb()).max(0.0))
    }

    fn draw(&self, svg: &mut String, axes: Axes, top: f64) {
        let _ = writeln!(svg, "<g transform=\"translate(0 {top})\">");
        self.draw_bands(svg, axes);
        draw_grid(svg, axes);
        self.draw_footprint(svg, axes);
        self.draw_swap(svg, axes);
        self.draw_peak(svg, axes);
        self.draw_title(svg);
        svg.push_str("</g>\n");
    }

    fn draw_bands(&self, svg: &mut String, axes: Axes) {
        let mut free_from = [LEFT; 2];
        for (i, stage) in self.summary.stages.iter().enumerate() {
            let (x0, x1) = self.span(stage, axes);
            let fill = BANDS[i % BANDS.len()];
            let _ = writeln!(
                svg,
                "<rect x=\"{x0:.1}\" y=\"{ABOVE}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\" \
                 fill=\"{fill}\"/>",
                x1 - x0
            );
            draw_stage_name(svg, stage, (x0, x1), &mut free_from);
        }
    }

    fn span(&self, stage: &StageUse, axes: Axes) -> (f64, f64) {
        let start = stage.start - self.begins();
        (axes.x(start), axes.x(start + stage.seconds))
    }

    fn draw_footprint(&self, svg: &mut String, axes: Axes) {
        let bottom = axes.y(0.0);
        for run in self.runs(axes, |sample| Some(sample.footprint?.as_gb())) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let line = points(&run);
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {bottom} L{line} L{:.1} {bottom} Z\" fill=\"{FOOTPRINT}\" \
                 fill-opacity=\"0.14\"/>\n<path d=\"M{line}\" fill=\"none\" \
                 stroke=\"{FOOTPRINT}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>",
                first.0, last.0
            );
        }
    }

    fn draw_swap(&self, svg: &mut String, axes: Axes) {
        for run in self.runs(axes, |sample| self.swap_gb(sample)) {
            let _ = writeln!(
                svg,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{SWAP}\" stroke-width=\"2\" \
                 stroke-dasharray=\"6 4\" stroke-linejoin=\"round\"/>",
                points(&run)
            );
        }
    }

    /// Unbroken lines: an unknown reading leaves a gap, it is not drawn as 0.
    fn runs(&self, axes: Axes, value: impl Fn(&Reading) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
        let mut runs = vec![Vec::new()];
        for sample in &self.samples {
            match (value(sample), runs.last_mut()) {
                (Some(gb), Some(run)) => run.push((axes.x(sample.t - self.begins()), axes.y(gb))),
                (Some(_), None) => {}
                (None, _) => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn draw_peak(&self, svg: &mut String, axes: Axes) {
        let highest = self.samples.iter().max_by_key(|sample| sample.footprint);
        let Some((sample, peak)) = highest.and_then(|s| Some((s, s.footprint?))) else { return };
        let (x, y) = (axes.x(sample.t - self.begins()), axes.y(peak.as_gb()));
        let class = if x > WIDTH - 160.0 { "end" } else { "start" };
        let beside = if class == "end" { x - 9.0 } else { x + 9.0 };
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{FOOTPRINT}\"/>\
             <text class=\"stage {class}\" x=\"{beside:.1}\" y=\"{:.1}\" paint-order=\"stroke\" \
             stroke=\"#ffffff\" stroke-width=\"4\" stroke-opacity=\"0.8\">peak {peak}</text>",
            (y - 7.0).max(ABOVE + 12.0)
        );
    }

    fn draw_title(&self, svg: &mut String) {
        let swap = self.summary.swap.map_or_else(
            || "swap unknown".to_owned(),
            |swap| format!("swap +{:.2} GB", swap.peak.as_gb() - swap.start.as_gb()),
        );
        let name = escaped(self.name);
        let _ = writeln!(svg, "<text class=\"title\" x=\"{LEFT}\" y=\"26\">{name}</text>");
        let (line, dash) = (WIDTH - RIGHT - 300.0, WIDTH - RIGHT - 170.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{line} 21 h26\" stroke=\"{FOOTPRINT}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"26\">footprint</text>\
             <path d=\"M{dash} 21 h26\" stroke=\"{SWAP}\" stroke-width=\"2\" \
             stroke-dasharray=\"6 4\"/><text x=\"{}\" y=\"26\">{swap}</text>",
            line + 33.0,
            dash + 33.0
        );
    }
}

/// Above its band, in whichever of two rows has room; a name that fits in neither is only in
/// the tooltip, as every name is.
fn draw_stage_name(
    svg: &mut String,
    stage: &StageUse,
    (x0, x1): (f64, f64),
    free_from: &mut [f64; 2],
) {
    let name = escaped(&stage.stage);
    let width = 7.4 * stage.stage.chars().count() as f64;
    let x = (f64::midpoint(x0, x1) - width / 2.0).clamp(LEFT, WIDTH - RIGHT - width.min(200.0));
    let peak = stage.peak_footprint.map_or_else(String::new, |peak| format!(", peak {peak}"));
    let _ = writeln!(
        svg,
        "<rect x=\"{x0:.1}\" y=\"{ABOVE}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\" \
         fill-opacity=\"0\"><title>{name}: {:.1} s{peak}</title></rect>",
        x1 - x0,
        stage.seconds
    );
    let Some(row) = free_from.iter().position(|free| *free <= x) else { return };
    free_from[row] = x + width + 10.0;
    let y = ABOVE - 8.0 - 15.0 * row as f64;
    let _ = writeln!(svg, "<text class=\"stage\" x=\"{x:.1}\" y=\"{y}\">{name}</text>");
}

fn draw_grid(svg: &mut String, axes: Axes) {
    let lines = (axes.gb / axes.gb_step).round() as u32;
    for i in 0..=lines {
        let gb = f64::from(i) * axes.gb_step;
        let (y, right) = (axes.y(gb), WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1} H{right}\" stroke=\"#94a3b8\" stroke-opacity=\"0.35\"/>\
             <text class=\"small end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 9.0,
            y + 4.0,
            number(gb, axes.gb_step)
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"small end\" x=\"{}\" y=\"{}\">GB</text>",
        LEFT - 9.0,
        ABOVE - 12.0
    );
    let step = step(axes.seconds / 8.0);
    let ticks = (axes.seconds / step).floor() as u32;
    for i in 0..=ticks {
        let seconds = f64::from(i) * step;
        let (x, y) = (axes.x(seconds), ABOVE + PLOT_HEIGHT);
        let unit = if i == ticks { " s" } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {y} v5\" stroke=\"#94a3b8\"/>\
             <text class=\"small mid\" x=\"{x:.1}\" y=\"{}\">{}{unit}</text>",
            y + 20.0,
            number(seconds, step)
        );
    }
}

/// As many decimals as the step needs.
fn number(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{value:.decimals$}")
}

fn points(run: &[(f64, f64)]) -> String {
    run.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Names come from the job, which may write anything.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use stageload_core::read_trace;

    use super::*;

    const STAGED: &str = include_str!("../../../tests/fixtures/traces/qwen-staged-1.trace.jsonl");

    #[test]
    fn steps_are_numbers_a_reader_counts_in() {
        let table = [(8.7, 10.0), (0.03, 0.05), (1.0, 1.0), (15.5, 20.0), (0.0, 0.001)];
        for (rough, want) in table {
            assert!((step(rough) - want).abs() < 1e-9, "{rough}: {}", step(rough));
        }
    }

    #[test]
    fn a_chart_names_every_stage_and_the_peak() {
        let records = read_trace(STAGED).unwrap();
        let svg = chart(&[("staged".into(), records.clone()), ("again".into(), records)]);
        for word in ["setup", "encode", "denoise", "decode", "peak 19.00 GB", ">staged<", ">again<"]
        {
            assert!(svg.contains(word), "{word}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn an_empty_trace_draws_empty_axes() {
        let svg = chart(&[("nothing".into(), Vec::new())]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_stage_cannot_write_into_the_picture() {
        let text = r#"{"type":"event","kind":"stage","stage":"<script>&\"\u0007","t":0}
{"type":"sample","t":0,"footprint":5}
{"type":"sample","t":1,"footprint":5}"#;
        let svg = chart(&[("a<b".into(), read_trace(text).unwrap())]);
        assert!(!svg.contains("<script>") && svg.contains("a&lt;b"));
    }
}

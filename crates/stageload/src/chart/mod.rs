//! Traces as a picture: footprint and swap over time with the stages behind, one panel a trace on
//! the same axes, so that two runs compare at a glance. SVG is text, so no drawing library.
//! Numbers come from `stageload_core::summarize`; how panels are laid out is below, the scale in
//! `axes`, the names of the stages in `labels`, limits and the stop in `lines`.

mod axes;
mod labels;
mod lines;
mod svg;

use std::fmt::Write;

use axes::{Axes, draw_grid};
use labels::Labels;
use lines::Lines;
use svg::{escaped, points};

use stageload_core::{Bytes, Reading, Record, StageUse, Summary, summarize};

/// Pixels. A panel is as wide as a README shows pictures.
const WIDTH: f64 = 960.0;
const PLOT_HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
/// Room below a plot for the times; what is above it depends on the names of its stages.
const BELOW: f64 = 46.0;
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
    let panel_height = axes.above + PLOT_HEIGHT + BELOW;
    let height = panel_height * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        panel.draw(&mut svg, axes, panel_height * i as f64);
    }
    svg + "</svg>\n"
}

/// One trace.
struct Panel<'a> {
    name: &'a str,
    summary: Summary,
    samples: Vec<Reading>,
    lines: Lines,
}

impl<'a> Panel<'a> {
    fn of(name: &'a str, records: &[Record]) -> Self {
        let sample = |record: &Record| match record {
            Record::Sample(reading) => Some(reading.clone()),
            _ => None,
        };
        let mut samples: Vec<Reading> = records.iter().filter_map(sample).collect();
        samples.sort_by(|a, b| a.t.total_cmp(&b.t));
        let summary = summarize(records);
        let lines = Lines::of(&summary);
        Self { name, summary, samples, lines }
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

    /// What a curve reaches, and a line that is not far above it.
    fn top_gb(&self) -> f64 {
        self.lines.top_gb(self.most_gb())
    }

    fn labels(&self, x: impl Fn(f64) -> f64) -> Labels<'_> {
        let middle = |stage: &StageUse| x(stage.start - self.begins() + stage.seconds / 2.0);
        Labels::of(self.summary.stages.iter().map(|stage| (&*stage.stage, middle(stage))))
    }

    fn draw(&self, svg: &mut String, axes: Axes, top: f64) {
        let _ = writeln!(svg, "<g transform=\"translate(0 {top})\">");
        self.draw_bands(svg, axes);
        draw_grid(svg, axes);
        self.draw_footprint(svg, axes);
        self.draw_swap(svg, axes);
        self.lines.draw(svg, axes, self.begins());
        self.draw_peak(svg, axes);
        self.draw_title(svg);
        // A tooltip shows only on what lies on top.
        self.draw_tooltips(svg, axes);
        self.labels(|t| axes.x(t)).draw(svg, axes.above);
        svg.push_str("</g>\n");
    }

    fn draw_bands(&self, svg: &mut String, axes: Axes) {
        for (i, stage) in self.summary.stages.iter().enumerate() {
            let fill = format!("fill=\"{}\"/>", BANDS[i % BANDS.len()]);
            self.draw_band(svg, axes, stage, &fill);
        }
    }

    fn draw_tooltips(&self, svg: &mut String, axes: Axes) {
        for stage in &self.summary.stages {
            let peak =
                stage.peak_footprint.map_or_else(String::new, |peak| format!(", peak {peak}"));
            let (name, seconds) = (escaped(&stage.stage), stage.seconds);
            let tip = format!("<title>{name}: {seconds:.1} s{peak}</title>");
            self.draw_band(svg, axes, stage, &format!("fill-opacity=\"0\">{tip}</rect>"));
        }
    }

    fn draw_band(&self, svg: &mut String, axes: Axes, stage: &StageUse, rest: &str) {
        let (x0, x1) = self.span(stage, axes);
        let _ = writeln!(
            svg,
            "<rect x=\"{x0:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\" {rest}",
            axes.above,
            x1 - x0
        );
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

    /// Unbroken lines: an unknown reading leaves a gap, it is not drawn as 0. A value holds until the next
    /// look, since where it moves the looks are close together: a slope between two that are far apart
    /// would show growth in a stage that had none.
    fn runs(&self, axes: Axes, value: impl Fn(&Reading) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
        let mut runs = vec![Vec::new()];
        for sample in &self.samples {
            match (value(sample), runs.last_mut()) {
                (Some(gb), Some(run)) => step_to(run, axes.x(sample.t - self.begins()), axes.y(gb)),
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
            (y - 7.0).max(axes.above + 12.0)
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

fn step_to(run: &mut Vec<(f64, f64)>, x: f64, y: f64) {
    if let Some((_, before)) = run.last().copied().filter(|(_, before)| (before - y).abs() > 0.05) {
        run.push((x, before));
    }
    run.push((x, y));
}

#[cfg(test)]
mod tests {
    use stageload_core::read_trace;

    use super::*;

    const STAGED: &str =
        include_str!("../../../../tests/fixtures/traces/qwen-staged-1.trace.jsonl");

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
    fn a_limit_near_the_curve_and_the_stop_are_drawn_and_a_far_line_is_not() {
        let text = r#"{"type":"start","limit":1073741824,"swap_budget":8589934592,"swap_limit":1610612736}
{"type":"sample","t":0,"footprint":5,"swap_used":536870912}
{"type":"sample","t":4,"footprint":1181116006,"swap_used":536870912}
{"type":"event","kind":"mark","note":"guard: stopping: footprint 1.10 GB > limit 1.00 GB","t":4.1}
{"type":"end","t":5,"exit":3,"reason":"footprint 1.10 GB > limit 1.00 GB","rule":"limit","share":1.0}"#;
        let svg = chart(&[("run".into(), read_trace(text).unwrap())]);
        assert!(svg.contains(">limit 1.00 GB<") && svg.contains(">stopped: limit<"), "{svg}");
        assert!(svg.contains(">swap limit: start + 1.00 GB<"), "{svg}");
        assert!(!svg.contains("swap budget"), "8 GB would press 1.1 GB flat");
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

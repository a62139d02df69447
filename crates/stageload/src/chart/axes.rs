//! The scale that all panels of a chart share, and its grid.

use std::fmt::Write;

use super::labels::ROW;
use super::{LEFT, PLOT_HEIGHT, PLOT_WIDTH, Panel, RIGHT, WIDTH};

/// Height of the title over the names of the stages.
const TITLE: f64 = 44.0;

/// The scale that all panels share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes {
    pub(super) seconds: f64,
    pub(super) gb: f64,
    gb_step: f64,
    /// Room above a plot for its title and the names of its stages.
    pub(super) above: f64,
}

impl Axes {
    pub(super) fn around(panels: &[Panel<'_>]) -> Self {
        let most = panels.iter().map(Panel::top_gb).fold(0.0, f64::max);
        let longest = panels.iter().map(Panel::seconds).fold(0.0, f64::max);
        let gb_step = step(most / 5.0);
        let gb = ((most * 1.04 / gb_step).ceil() * gb_step).max(gb_step);
        let flat = Self { seconds: longest.max(0.001), gb, gb_step, above: 0.0 };
        let rows = panels.iter().map(|panel| panel.labels(|t| flat.x(t)).rows()).max();
        Self { above: TITLE + ROW * rows.unwrap_or(1) as f64, ..flat }
    }

    pub(super) fn x(self, seconds: f64) -> f64 {
        LEFT + PLOT_WIDTH * (seconds / self.seconds).clamp(0.0, 1.0)
    }

    pub(super) fn y(self, gb: f64) -> f64 {
        self.above + PLOT_HEIGHT * (1.0 - (gb / self.gb).clamp(0.0, 1.0))
    }
}

/// The nearest of 1, 2, 5 × 10^n that is not below `rough`: steps a reader counts in.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-3).log10().floor());
    let of_power = |factor: f64| factor * power;
    [1.0, 2.0, 5.0].map(of_power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

pub(super) fn draw_grid(svg: &mut String, axes: Axes) {
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
        axes.above - 12.0
    );
    let step = step(axes.seconds / 8.0);
    let ticks = (axes.seconds / step).floor() as u32;
    for i in 0..=ticks {
        let seconds = f64::from(i) * step;
        let (x, y) = (axes.x(seconds), axes.above + PLOT_HEIGHT);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbers_a_reader_counts_in() {
        let table = [(8.7, 10.0), (0.03, 0.05), (1.0, 1.0), (15.5, 20.0), (0.0, 0.001)];
        for (rough, want) in table {
            assert!((step(rough) - want).abs() < 1e-9, "{rough}: {}", step(rough));
        }
    }
}

//! What a run was held to, as far as its trace says so: the limit of its footprint, the budget of
//! its swap, and the moment at which the guard stopped it.

use std::fmt::Write;

use stageload_core::{Bytes, Summary};

use super::axes::Axes;
use super::svg::escaped;
use super::{FOOTPRINT, LEFT, PLOT_HEIGHT, RIGHT, SWAP, WIDTH};

/// A line further above the curves than this would press them flat, so it is left out.
const FAR: f64 = 1.5;
const STOP: &str = "#b91c1c";

/// Lines across a plot.
#[derive(Debug, Default)]
pub(super) struct Lines {
    limit: Option<Bytes>,
    budget: Option<Bytes>,
    /// Over the swap at the start, as the curve is.
    swap_limit: Option<Bytes>,
    /// When, and by which rule.
    stop: Option<(f64, String)>,
}

impl Lines {
    pub(super) fn of(summary: &Summary) -> Self {
        let size = |name: &str| summary.meta.get(name)?.as_u64().map(Bytes);
        let stop = summary.stop.as_ref().and_then(|stop| {
            Some((stop.t?, stop.rule.as_ref().map_or_else(String::new, |rule| format!(": {rule}"))))
        });
        let start = summary.swap.map(|swap| swap.start);
        let swap_limit =
            size("swap_limit").zip(start).map(|(all, start)| all.saturating_sub(start));
        Self { limit: size("limit"), budget: size("swap_budget"), swap_limit, stop }
    }

    fn across(&self) -> [(Option<Bytes>, &'static str, &'static str); 3] {
        [
            (self.limit, "limit", FOOTPRINT),
            (self.budget, "swap budget", SWAP),
            (self.swap_limit, "swap limit: start +", SWAP),
        ]
    }

    /// How high the plot must be for curves up to `most` GB and the lines near them.
    pub(super) fn top_gb(&self, most: f64) -> f64 {
        let near = |gb: &f64| *gb <= most * FAR;
        let sizes = self.across().into_iter().filter_map(|(size, ..)| Some(size?.as_gb()));
        sizes.filter(near).fold(most, f64::max)
    }

    pub(super) fn draw(&self, svg: &mut String, axes: Axes, begins: f64) {
        for (size, name, colour) in self.across() {
            if let Some(size) = size.filter(|size| size.as_gb() <= axes.gb) {
                draw_across(svg, axes, size, name, colour);
            }
        }
        if let Some((t, rule)) = &self.stop {
            draw_stop(svg, axes, t - begins, rule);
        }
    }
}

fn draw_across(svg: &mut String, axes: Axes, size: Bytes, name: &str, colour: &str) {
    let (y, right) = (axes.y(size.as_gb()), WIDTH - RIGHT);
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {y:.1} H{right}\" stroke=\"{colour}\" stroke-width=\"1.5\" \
         stroke-dasharray=\"2 3\"/>\
         <text class=\"small\" x=\"{}\" y=\"{:.1}\">{name} {size}</text>",
        LEFT + 6.0,
        y - 4.0
    );
}

fn draw_stop(svg: &mut String, axes: Axes, seconds: f64, rule: &str) {
    let (x, top) = (axes.x(seconds), axes.above);
    let (class, beside) = if x > WIDTH / 2.0 { ("end", x - 5.0) } else { ("start", x + 5.0) };
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} {top} v{PLOT_HEIGHT}\" stroke=\"{STOP}\" stroke-width=\"1.5\"/>\
         <text class=\"{class}\" x=\"{beside:.1}\" y=\"{:.1}\">stopped{}</text>",
        top + PLOT_HEIGHT - 8.0,
        escaped(rule)
    );
}

//! The way down after a kill: the preset's rungs, from high to low.

use std::collections::BTreeMap;

use super::preset::{Preset, Rung};

impl Preset {
    /// The next lower setting, in words, and every value with it; none at the bottom. A rung is
    /// lower if it changes something and raises nothing, so going down always ends.
    pub fn next_lower(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Option<(String, BTreeMap<String, String>)> {
        let is_lower = |at: &usize| {
            let mut changes =
                self.ladder[*at].set.iter().filter(|(k, v)| values.get(*k) != Some(v));
            changes.clone().next().is_some() && changes.all(|(k, v)| self.lowers(*at, k, v, values))
        };
        let at = (0..self.ladder.len()).find(is_lower)?;
        let rung = &self.ladder[at];
        let mut lower = values.clone();
        lower.extend(rung.set.clone());
        Some((in_words(rung, values), lower))
    }

    /// Numbers can be compared. Of other values the one that a later rung sets is the lower one.
    fn lowers(&self, at: usize, name: &str, to: &str, values: &BTreeMap<String, String>) -> bool {
        let Some(from) = values.get(name) else {
            return true;
        };
        let rank = |value: &str| self.param(name).and_then(|param| param.kind.rank(value));
        match (rank(from), rank(to)) {
            (Some(from), Some(to)) => to < from,
            _ => self.last_rung_with(name, from).is_none_or(|last| last < at),
        }
    }

    fn last_rung_with(&self, name: &str, value: &str) -> Option<usize> {
        self.ladder.iter().rposition(|rung| rung.set.get(name).is_some_and(|one| one == value))
    }
}

fn in_words(rung: &Rung, values: &BTreeMap<String, String>) -> String {
    let changes = rung.set.iter().filter(|(name, value)| values.get(*name) != Some(value));
    let change = |(name, value): (&String, &String)| match values.get(name) {
        Some(before) => format!("{name} {value} instead of {before}"),
        None => format!("{name} {value}"),
    };
    format!("{} ({})", rung.about, changes.map(change).collect::<Vec<_>>().join(", "))
}

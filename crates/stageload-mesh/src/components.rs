//! Connected regions of a mask.

use crate::plane::Mask;

/// Regions of true pixels, joined over edges (not corners).
#[derive(Debug)]
pub(crate) struct Regions {
    /// Region of each pixel, counted from 1; 0 where the mask is false.
    pub(crate) label: Vec<u32>,
    /// Pixels of each region; `size[0]` is unused.
    pub(crate) size: Vec<usize>,
}

impl Regions {
    pub(crate) fn of(mask: &Mask) -> Self {
        let mut regions = Self { label: vec![0; mask.data.len()], size: vec![0] };
        let mut stack = Vec::new();
        for start in 0..mask.data.len() {
            if !mask.data[start] || regions.label[start] != 0 {
                continue;
            }
            let label = regions.size.len() as u32;
            regions.size.push(0);
            regions.label[start] = label;
            stack.push(start);
            while let Some(i) = stack.pop() {
                regions.size[label as usize] += 1;
                for j in neighbours(i, mask.width, mask.height) {
                    if mask.data[j] && regions.label[j] == 0 {
                        regions.label[j] = label;
                        stack.push(j);
                    }
                }
            }
        }
        regions
    }

    pub(crate) fn largest(&self) -> usize {
        self.size.iter().copied().max().unwrap_or(0)
    }

    /// Pixels of the regions that `keep` says yes to, by size.
    pub(crate) fn filter(&self, keep: impl Fn(usize) -> bool) -> Vec<bool> {
        self.label.iter().map(|&l| l != 0 && keep(self.size[l as usize])).collect()
    }
}

fn neighbours(i: usize, w: usize, h: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (i % w, i / w);
    let left = (x > 0).then(|| i - 1);
    let right = (x + 1 < w).then(|| i + 1);
    let up = (y > 0).then(|| i - w);
    let down = (y + 1 < h).then(|| i + w);
    [left, right, up, down].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_that_touch_by_a_corner_are_two_regions() {
        let data = [true, false, false, true].to_vec();
        let regions = Regions::of(&Mask { width: 2, height: 2, data });
        assert_eq!(regions.size, [0, 1, 1]);
        assert_eq!(regions.filter(|n| n > 1), [false; 4]);
    }
}

//! Taubin smoothing: takes the grid's stairs off without shrinking the shape.

use rayon::prelude::*;

use crate::surface::Mesh;

const ROUNDS: usize = 6;
/// A step in and a slightly larger step out.
const STEPS: [f32; 2] = [0.5, -0.52];

pub(crate) fn smooth(mesh: &mut Mesh) {
    let ring = Ring::of(mesh);
    for _ in 0..ROUNDS {
        for step in STEPS {
            mesh.points = ring.relaxed(&mesh.points, step);
        }
    }
}

/// Each vertex's neighbours; on a closed surface each lies after it in exactly one triangle.
struct Ring {
    first: Vec<u32>,
    neighbour: Vec<u32>,
}

impl Ring {
    fn of(mesh: &Mesh) -> Self {
        let mut first = vec![0u32; mesh.points.len() + 1];
        for &v in &mesh.indices {
            first[v as usize + 1] += 1;
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut next = first.clone();
        let mut neighbour = vec![0; mesh.indices.len()];
        for t in mesh.triangles() {
            for i in 0..3 {
                let slot = &mut next[t[i] as usize];
                neighbour[*slot as usize] = t[(i + 1) % 3];
                *slot += 1;
            }
        }
        Self { first, neighbour }
    }

    fn relaxed(&self, points: &[[f32; 3]], step: f32) -> Vec<[f32; 3]> {
        let moved = |(i, p): (usize, &[f32; 3])| {
            let around = &self.neighbour[self.first[i] as usize..self.first[i + 1] as usize];
            if around.is_empty() {
                return *p;
            }
            let mut sum = [0f32; 3];
            for &j in around {
                let q = points[j as usize];
                (0..3).for_each(|c| sum[c] += q[c]);
            }
            let share = 1.0 / around.len() as f32;
            [0, 1, 2].map(|c| p[c] + step * (sum[c] * share - p[c]))
        };
        points.par_iter().enumerate().map(moved).collect()
    }
}

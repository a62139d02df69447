//! Fewer triangles: meshopt's edge collapse, in two passes.
//!
//! One pass over the 7.4 M triangles of a 1024 grid is eight seconds on one thread. So bands of rows
//! are collapsed side by side first, their borders held still; then the whole, borders too.

use meshopt::{SimplifyOptions, VertexDataAdapter};
use rayon::prelude::*;

use crate::surface::{Mesh, Surface};
use crate::topology::{Topology, without_flaps};

/// Rows of the grid in a band. Small bands stay in the processor's cache (3.7 s for the first pass at
/// 128 rows, 3.1 at 64, 2.5 at 32), but each adds a border that the second pass must take away.
const BAND_ROWS: usize = 32;
/// What the first pass leaves for the second, against the final number of triangles.
const FIRST_PASS: f64 = 2.0;
/// The first pass leaves at least this share: a band whose borders are held still cannot give more
/// without folding.
const LEAST_FIRST_PASS: f64 = 0.05;
/// Largest error allowed, relative to the mesh's extent. The target number decides long before.
const MAX_ERROR: f32 = 0.02;

/// A solid of about `faces` triangles; less detailed meshes are left as they are. Where so few
/// cannot hold the shape together (the teeth of a comb), it gets more.
pub(crate) fn simplify(surface: Surface, faces: usize) -> Mesh {
    let total = surface.mesh.face_count();
    let keep = (FIRST_PASS * faces as f64 / total as f64).max(LEAST_FIRST_PASS);
    let mesh = if keep < 0.6 { first_pass(surface, keep) } else { surface.mesh };
    let mut target = faces;
    while target < mesh.face_count() {
        let indices = collapse(&mesh.indices, &mesh.points, target, SimplifyOptions::None);
        let solid = without_flaps(&Mesh { points: mesh.points.clone(), indices });
        if Topology::of(solid.points.len(), &solid.indices).is_watertight() {
            return solid;
        }
        target *= 2;
    }
    without_flaps(&mesh)
}

fn first_pass(surface: Surface, keep: f64) -> Mesh {
    let Surface { mesh, rows } = surface;
    let bands: Vec<(usize, usize)> = (0..rows.len() - 1)
        .step_by(BAND_ROWS)
        .map(|y| (rows[y], rows[(y + BAND_ROWS).min(rows.len() - 1)]))
        .filter(|(from, to)| from < to)
        .collect();
    let kept: Vec<Vec<u32>> = bands
        .into_par_iter()
        .map(|(from, to)| band(&mesh.points, &mesh.indices[from..to], keep))
        .collect();
    compact(&Mesh { points: mesh.points, indices: kept.concat() })
}

/// One band, in its own numbering: its points lie together, for the grid's rows are in order.
fn band(points: &[[f32; 3]], indices: &[u32], keep: f64) -> Vec<u32> {
    let first = indices.iter().copied().min().unwrap_or(0);
    let last = indices.iter().copied().max().unwrap_or(0);
    let own: Vec<u32> = indices.iter().map(|i| i - first).collect();
    let points = &points[first as usize..=last as usize];
    let faces = (own.len() as f64 / 3.0 * keep) as usize;
    let kept = collapse(&own, points, faces, SimplifyOptions::LockBorder);
    kept.into_iter().map(|i| i + first).collect()
}

fn collapse(
    indices: &[u32],
    points: &[[f32; 3]],
    faces: usize,
    options: SimplifyOptions,
) -> Vec<u32> {
    let stride = size_of::<[f32; 3]>();
    let vertices = VertexDataAdapter::new(meshopt::typed_to_bytes(points), stride, 0)
        .expect("points are three floats each");
    meshopt::simplify(indices, &vertices, faces * 3, MAX_ERROR, options, None)
}

/// Without points that no triangle uses; the order of the others stays.
pub(crate) fn compact(mesh: &Mesh) -> Mesh {
    let mut new = vec![u32::MAX; mesh.points.len()];
    mesh.indices.iter().for_each(|&i| new[i as usize] = 0);
    let mut points = Vec::new();
    for (p, slot) in mesh.points.iter().zip(&mut new) {
        if *slot == 0 {
            *slot = points.len() as u32;
            points.push(*p);
        }
    }
    let indices = mesh.indices.iter().map(|&i| new[i as usize]).collect();
    Mesh { points, indices }
}

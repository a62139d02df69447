//! The surface of the field F(x, y, z) = u − ((z − mid)/r)²: sparse surface nets.
//!
//! Only cells along the two sheets are visited, never a dense cube. A cell gets one vertex for each
//! connected group of its inside corners, so that sheets that touch stay apart: the plain rule of
//! one vertex a cell left 27–29 edges with four faces on the test photos, this one none.

use rayon::prelude::*;

use crate::plane::Plane;

/// Grid corner k lies at z = k − ½, so that no corner falls on the mid surface of a flat subject.
const Z_OFFSET: f32 = 0.5;

/// u at and below this marks where the picture cuts the subject: the surface ends there in a flat face.
pub(crate) const CUT: f32 = -1e8;

/// Triangles over points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mesh {
    pub(crate) points: Vec<[f32; 3]>,
    /// Three indices a triangle, counter-clockwise seen from outside.
    pub(crate) indices: Vec<u32>,
}

impl Mesh {
    pub(crate) fn triangles(&self) -> impl ExactSizeIterator<Item = [u32; 3]> + '_ {
        self.indices.chunks_exact(3).map(|t| [t[0], t[1], t[2]])
    }

    pub(crate) fn face_count(&self) -> usize {
        self.indices.len() / 3
    }
}

/// The field on its grid: u, the sheets' thickness ratios and the mid surface, in grid pixels.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) u: Plane,
    pub(crate) front: Plane,
    pub(crate) back: Plane,
    pub(crate) mid: Plane,
}

impl Field {
    pub(crate) fn side(&self) -> usize {
        self.u.width
    }

    fn at(&self, i: usize, k: i32) -> f32 {
        let z = k as f32 - Z_OFFSET - self.mid.data[i];
        let ratio = if z >= 0.0 { self.front.data[i] } else { self.back.data[i] };
        self.u.data[i] - (z / ratio).powi(2)
    }

    /// Heights of the front and the back sheet over one grid point.
    pub(crate) fn sheets(&self, i: usize) -> (f32, f32) {
        let root = self.u.data[i].max(0.0).sqrt();
        let mid = self.mid.data[i];
        (mid + self.front.data[i] * root, mid - self.back.data[i] * root)
    }
}

/// Which group each inside corner of a cell belongs to, for all 256 cells.
struct Groups {
    of: [[u8; 8]; 256],
    count: [u8; 256],
}

impl Groups {
    fn new() -> Self {
        let mut groups = Self { of: [[0; 8]; 256], count: [0; 256] };
        for cell in 0..256usize {
            let mut seen = 0u8;
            for corner in 0..8 {
                if cell >> corner & 1 == 1 && seen >> corner & 1 == 0 {
                    let group = groups.count[cell];
                    flood(cell, corner, &mut seen, &mut |c| groups.of[cell][c] = group);
                    groups.count[cell] += 1;
                }
            }
        }
        groups
    }
}

fn flood(cell: usize, corner: usize, seen: &mut u8, visit: &mut impl FnMut(usize)) {
    *seen |= 1 << corner;
    visit(corner);
    for axis in 0..3 {
        let next = corner ^ (1 << axis);
        if cell >> next & 1 == 1 && *seen >> next & 1 == 0 {
            flood(cell, next, seen, visit);
        }
    }
}

#[derive(Clone, Copy)]
struct Cell {
    x: u32,
    k: i32,
    config: u8,
    first: u32,
}

/// One row of cells: sorted by x, then k.
#[derive(Default)]
struct Row {
    cells: Vec<Cell>,
    /// First cell of each x.
    columns: Vec<u32>,
    points: Vec<[f32; 3]>,
}

/// A closed surface, and where each grid row's triangles begin (for work in bands).
#[derive(Debug)]
pub(crate) struct Surface {
    pub(crate) mesh: Mesh,
    /// `rows[y]..rows[y + 1]` are the indices of the triangles of row y.
    pub(crate) rows: Vec<usize>,
}

/// Extracts the surface; z towards the viewer, y down, in grid pixels.
pub(crate) fn extract(field: &Field) -> Surface {
    let groups = Groups::new();
    let n = field.side() - 1;
    let rows: Vec<Row> = (0..n).into_par_iter().map(|y| row(field, &groups, y)).collect();
    let mut first = vec![0u32; n + 1];
    for (y, row) in rows.iter().enumerate() {
        first[y + 1] = first[y] + row.points.len() as u32;
    }
    let net = Net { rows: &rows, first: &first, groups: &groups };
    let by_row: Vec<Vec<u32>> = (0..n).into_par_iter().map(|y| net.triangles(y)).collect();
    let mut starts = vec![0; n + 1];
    for (y, indices) in by_row.iter().enumerate() {
        starts[y + 1] = starts[y] + indices.len();
    }
    let mut mesh = Mesh {
        points: Vec::with_capacity(first[n] as usize),
        indices: Vec::with_capacity(starts[n]),
    };
    for (row, indices) in rows.into_iter().zip(by_row) {
        mesh.points.extend(row.points);
        mesh.indices.extend(indices);
    }
    Surface { mesh, rows: starts }
}

fn row(field: &Field, groups: &Groups, y: usize) -> Row {
    let side = field.side();
    let mut row = Row { columns: Vec::with_capacity(side), ..Row::default() };
    for x in 0..side - 1 {
        row.columns.push(row.cells.len() as u32);
        let corners = [y * side + x, y * side + x + 1, (y + 1) * side + x, (y + 1) * side + x + 1];
        if corners.iter().any(|&i| field.u.data[i] > 0.0) {
            for span in spans(field, &corners) {
                column(field, groups, &corners, (x, y), span, &mut row);
            }
        }
    }
    row.columns.push(row.cells.len() as u32);
    row
}

/// Cells that the back and the front sheet may cross, as ranges of k that do not overlap.
fn spans(field: &Field, corners: &[usize; 4]) -> impl Iterator<Item = (i32, i32)> {
    let mut front = (f32::MAX, f32::MIN);
    let mut back = (f32::MAX, f32::MIN);
    for &i in corners {
        let (f, b) = field.sheets(i);
        front = (front.0.min(f), front.1.max(f));
        back = (back.0.min(b), back.1.max(b));
    }
    let cells = |(low, high): (f32, f32)| {
        ((low + Z_OFFSET).floor() as i32 - 1, (high + Z_OFFSET).floor() as i32 + 1)
    };
    let (f, b) = (cells(front), cells(back));
    let apart = f.0 > b.1 + 1;
    let first = if apart { b } else { (b.0.min(f.0), b.1.max(f.1)) };
    std::iter::once(first).chain(apart.then_some(f))
}

fn column(
    field: &Field,
    groups: &Groups,
    corners: &[usize; 4],
    (x, y): (usize, usize),
    (from, to): (i32, i32),
    row: &mut Row,
) {
    let layer = |k| corners.map(|i| field.at(i, k));
    let mut low = layer(from);
    for k in from..=to {
        let high = layer(k + 1);
        let f = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
        low = high;
        let config = (0..8).fold(0u8, |c, i| c | u8::from(f[i] > 0.0) << i);
        if config == 0 || config == 255 {
            continue;
        }
        row.cells.push(Cell { x: x as u32, k, config, first: row.points.len() as u32 });
        let origin = [x as f32, y as f32, k as f32 - Z_OFFSET];
        place(groups, config, &f, origin, &mut row.points);
    }
}

/// A vertex for each group: the mean of the crossings on its edges.
fn place(groups: &Groups, config: u8, f: &[f32; 8], origin: [f32; 3], out: &mut Vec<[f32; 3]>) {
    let cell = usize::from(config);
    let mut sum = [[0f32; 4]; 4];
    for axis in 0..3 {
        for a in (0..8usize).filter(|a| a >> axis & 1 == 0) {
            let b = a | 1 << axis;
            let (a_in, b_in) = (cell >> a & 1 == 1, cell >> b & 1 == 1);
            if a_in == b_in {
                continue;
            }
            let s = &mut sum[usize::from(groups.of[cell][if a_in { a } else { b }])];
            for (q, s) in s.iter_mut().take(3).enumerate() {
                *s += (a >> q & 1) as f32;
            }
            s[axis] += f[a] / (f[a] - f[b]);
            s[3] += 1.0;
        }
    }
    let group = |s: &[f32; 4]| [0, 1, 2].map(|q| origin[q] + s[q] / s[3]);
    out.extend(sum.iter().take(usize::from(groups.count[cell])).map(group));
}

/// Rows of cells as one net.
struct Net<'a> {
    rows: &'a [Row],
    first: &'a [u32],
    groups: &'a Groups,
}

impl Net<'_> {
    fn triangles(&self, y: usize) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.rows[y].cells.len() * 7);
        for cell in &self.rows[y].cells {
            for axis in 0..3 {
                self.quad(y, cell, axis, &mut out);
            }
        }
        out
    }

    /// The quad across the cell edge that runs from corner 0 along `axis`, when F changes sign
    /// there.
    fn quad(&self, y: usize, cell: &Cell, axis: usize, out: &mut Vec<u32>) {
        let far = 1usize << axis;
        let starts_inside = cell.config & 1 == 1;
        if (cell.config >> far & 1 == 1) == starts_inside {
            return;
        }
        let (a1, a2) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut quad = [0u32; 4];
        for (vertex, (d1, d2)) in quad.iter_mut().zip([(0, 0), (1, 0), (1, 1), (0, 1)]) {
            let mut step = [0usize; 3];
            step[a1] = d1;
            step[a2] = d2;
            // The edge's inside end, as that neighbour sees it.
            let near = d1 << a1 | d2 << a2;
            let corner = if starts_inside { near } else { near | far };
            match self.vertex(y, cell, step, corner) {
                Some(v) => *vertex = v,
                None => return,
            }
        }
        if !starts_inside {
            quad.reverse();
        }
        let [a, b, c, d] = quad;
        out.extend([a, b, c, a, c, d]);
    }

    /// The vertex of the cell `step` before this one, of the group that `corner` is in.
    fn vertex(&self, y: usize, cell: &Cell, step: [usize; 3], corner: usize) -> Option<u32> {
        let x = (cell.x as usize).checked_sub(step[0])?;
        let y = y.checked_sub(step[1])?;
        let k = cell.k - step[2] as i32;
        let row = &self.rows[y];
        let cells = &row.cells[row.columns[x] as usize..row.columns[x + 1] as usize];
        let found = &cells[cells.binary_search_by_key(&k, |c| c.k).ok()?];
        let group = self.groups.of[usize::from(found.config)][corner];
        Some(self.first[y] + found.first + u32::from(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    /// A field over an `n`×`n` grid, u given by its place.
    pub(crate) fn field(n: usize, u: impl Fn(f32, f32) -> f32) -> Field {
        let half = n as f32 / 2.0;
        let at = |i: usize| i as f32 - half;
        let u = (0..n * n).map(|i| u(at(i % n), at(i / n))).collect();
        let one = || Plane::filled(n, n, 1.0);
        let mid = Plane::filled(n, n, 0.0);
        Field { u: Plane::new(n, n, u), front: one(), back: one(), mid }
    }

    fn topology(mesh: &Mesh) -> Topology {
        Topology::of(mesh.points.len(), &mesh.indices)
    }

    #[test]
    fn a_ball_is_closed_and_every_point_lies_on_it() {
        let mesh = extract(&field(96, |x, y| 1600.0 - x * x - y * y)).mesh;
        let t = topology(&mesh);
        assert!(t.is_watertight() && t.components == 1 && t.euler == 2, "{t:?}");
        for p in &mesh.points {
            let r = (p[0] - 48.0).hypot(p[1] - 48.0).hypot(p[2]);
            assert!((r - 40.0).abs() < 0.6, "{p:?} lies {r} from the centre");
        }
    }

    #[test]
    fn triangles_face_outwards() {
        let mesh = extract(&field(64, |x, y| 400.0 - x * x - y * y)).mesh;
        let volume: f32 = mesh
            .triangles()
            .map(|t| {
                let [a, b, c] = t.map(|i| mesh.points[i as usize]);
                let cross = [
                    b[1] * c[2] - b[2] * c[1],
                    b[2] * c[0] - b[0] * c[2],
                    b[0] * c[1] - b[1] * c[0],
                ];
                (a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]) / 6.0
            })
            .sum();
        let exact = 4.0 / 3.0 * std::f32::consts::PI * 20f32.powi(3);
        assert!((volume / exact - 1.0).abs() < 0.02, "{volume} against {exact}");
    }

    #[test]
    fn sheets_that_touch_stay_apart() {
        // Two discs whose rims meet in a point, thin as paper there.
        let mesh = extract(&field(96, |x, y| {
            let disc = |cx: f32| 400.0 - (x - cx).powi(2) - y * y;
            disc(-20.2).max(disc(20.2))
        }))
        .mesh;
        let t = topology(&mesh);
        assert!(t.is_watertight(), "{t:?}");
    }
}

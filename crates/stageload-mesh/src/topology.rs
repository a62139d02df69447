//! Is it a solid? Counting what every edge of a mesh joins, and cutting off what hangs on by less.

use crate::simplify::compact;
use crate::surface::Mesh;

/// Pieces smaller than this share of the largest are dropped.
const LEAST_PIECE: f64 = 0.01;

/// What the program checks of every mesh before it writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Edges with one triangle only: holes.
    pub boundary_edges: usize,
    /// Edges with more than two triangles.
    pub non_manifold_edges: usize,
    /// Edges whose two triangles do not run along it in opposite directions.
    pub flipped_edges: usize,
    /// Connected pieces.
    pub components: usize,
    /// Vertices − edges + faces; 2 for each ball-like piece.
    pub euler: i64,
}

impl Topology {
    /// Whether the mesh bounds a solid.
    pub const fn is_watertight(&self) -> bool {
        self.boundary_edges == 0 && self.non_manifold_edges == 0 && self.flipped_edges == 0
    }

    /// Counts a mesh given as triangles over `points` vertices.
    pub fn of(points: usize, indices: &[u32]) -> Self {
        let edges = Edges::of(indices);
        let mut topology = Self {
            boundary_edges: 0,
            non_manifold_edges: 0,
            flipped_edges: 0,
            components: 0,
            euler: 0,
        };
        let mut count = 0i64;
        let mut pieces = Pieces::new(indices.len() / 3);
        for group in edges.groups() {
            count += 1;
            match group {
                [_] => topology.boundary_edges += 1,
                [a, b] => {
                    topology.flipped_edges += usize::from(a.forward == b.forward);
                    pieces.join(a.triangle, b.triangle);
                }
                _ => topology.non_manifold_edges += 1,
            }
        }
        let mut used = vec![false; points];
        for &i in indices {
            used[i as usize] = true;
        }
        let vertices = used.iter().filter(|u| **u).count() as i64;
        topology.components = pieces.count();
        topology.euler = vertices - count + (indices.len() / 3) as i64;
        topology
    }
}

/// The mesh without pieces that hang on by a non-manifold edge only (edge collapse leaves a few
/// dozen such flaps) and without crumbs.
pub(crate) fn without_flaps(mesh: &Mesh) -> Mesh {
    let edges = Edges::of(&mesh.indices);
    let mut pieces = Pieces::new(mesh.face_count());
    for group in edges.groups() {
        if let [a, b] = group {
            pieces.join(a.triangle, b.triangle);
        }
    }
    let sizes = pieces.sizes();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let least = LEAST_PIECE * largest as f64;
    let keep = |t: usize, pieces: &mut Pieces| sizes[pieces.root(t)] as f64 >= least;
    let mut indices = Vec::with_capacity(mesh.indices.len());
    for (t, triangle) in mesh.triangles().enumerate() {
        if keep(t, &mut pieces) {
            indices.extend(triangle);
        }
    }
    compact(&Mesh { points: mesh.points.clone(), indices })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    low: u32,
    high: u32,
    triangle: u32,
    /// Runs from the lower to the higher vertex.
    forward: bool,
}

/// All triangle sides, sorted so that those of one edge lie together.
struct Edges(Vec<Side>);

impl Edges {
    fn of(indices: &[u32]) -> Self {
        let mut sides = Vec::with_capacity(indices.len());
        for (triangle, t) in indices.chunks_exact(3).enumerate() {
            for i in 0..3 {
                let (a, b) = (t[i], t[(i + 1) % 3]);
                let (low, high) = (a.min(b), a.max(b));
                sides.push(Side { low, high, triangle: triangle as u32, forward: a < b });
            }
        }
        sides.sort_unstable();
        Self(sides)
    }

    fn groups(&self) -> impl Iterator<Item = &[Side]> {
        self.0.chunk_by(|a, b| (a.low, a.high) == (b.low, b.high))
    }
}

/// Triangles joined into pieces (union-find).
struct Pieces(Vec<u32>);

impl Pieces {
    fn new(n: usize) -> Self {
        Self((0..n as u32).collect())
    }

    fn root(&mut self, i: usize) -> usize {
        let mut i = i as u32;
        while self.0[i as usize] != i {
            let parent = self.0[self.0[i as usize] as usize];
            self.0[i as usize] = parent;
            i = parent;
        }
        i as usize
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a as usize), self.root(b as usize));
        self.0[a.max(b)] = a.min(b) as u32;
    }

    fn count(&mut self) -> usize {
        (0..self.0.len()).filter(|&i| self.root(i) == i).count()
    }

    /// Triangles of each piece, at its root.
    fn sizes(&mut self) -> Vec<usize> {
        let mut sizes = vec![0; self.0.len()];
        for i in 0..self.0.len() {
            let root = self.root(i);
            sizes[root] += 1;
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TETRAHEDRON: [u32; 12] = [0, 1, 2, 0, 3, 1, 1, 3, 2, 2, 3, 0];

    #[test]
    fn a_tetrahedron_is_watertight_and_ball_like() {
        let t = Topology::of(4, &TETRAHEDRON);
        assert!(t.is_watertight(), "{t:?}");
        assert_eq!((t.components, t.euler), (1, 2));
    }

    #[test]
    fn a_missing_face_leaves_three_boundary_edges() {
        assert_eq!(Topology::of(4, &TETRAHEDRON[..9]).boundary_edges, 3);
    }

    #[test]
    fn a_face_turned_round_is_seen() {
        let mut turned = TETRAHEDRON;
        turned.swap(0, 1);
        assert_eq!(Topology::of(4, &turned).flipped_edges, 3);
    }

    #[test]
    fn a_flap_on_an_edge_that_has_its_two_faces_is_cut_off() {
        // A double cone: two tips and a ring of 400, 800 triangles, closed.
        let mut indices = vec![];
        for i in 0..400u32 {
            let (a, b) = (2 + i, 2 + (i + 1) % 400);
            indices.extend([0, a, b, 1, b, a]);
        }
        let solid = indices.len();
        indices.extend([2, 3, 402, 3, 2, 402]);
        let mesh = Mesh { points: vec![[0.0; 3]; 403], indices };
        assert_eq!(Topology::of(403, &mesh.indices).non_manifold_edges, 1);
        let cut = without_flaps(&mesh);
        assert_eq!(cut.indices, mesh.indices[..solid]);
        assert!(Topology::of(402, &cut.indices).is_watertight());
    }
}

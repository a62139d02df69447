//! The textured mesh as it is written and drawn: world units, charts split, normals smooth.

use image::RgbImage;

use crate::surface::Mesh;

/// A textured triangle mesh. x right, y up, z towards the viewer; the subject's square is one unit
/// wide and centred.
#[derive(Debug, Clone)]
pub struct Model {
    /// Vertices.
    pub positions: Vec<[f32; 3]>,
    /// Unit normals, smooth over the seam between the charts.
    pub normals: Vec<[f32; 3]>,
    /// Places in the atlas, from its top left corner.
    pub uvs: Vec<[f32; 2]>,
    /// Three indices a triangle, counter-clockwise seen from outside.
    pub indices: Vec<u32>,
    /// Base colours.
    pub atlas: RgbImage,
}

impl Model {
    /// Puts a mesh in grid pixels (side `n`) into the world and on its atlas.
    pub(crate) fn new(mesh: &Mesh, n: usize, atlas: RgbImage) -> Self {
        let side = n as f32;
        let world =
            |p: &[f32; 3]| [(p[0] + 0.5) / side - 0.5, 0.5 - (p[1] + 0.5) / side, p[2] / side];
        let points: Vec<[f32; 3]> = mesh.points.iter().map(world).collect();
        // Turning y over turns every triangle over, too.
        let triangles: Vec<[u32; 3]> = mesh.triangles().map(|[a, b, c]| [a, c, b]).collect();
        let normals = smooth_normals(&points, &triangles);
        let mut model =
            Self { positions: vec![], normals: vec![], uvs: vec![], indices: vec![], atlas };
        for front in [true, false] {
            model.add_chart(&points, &normals, &triangles, front);
        }
        model
    }

    fn add_chart(
        &mut self,
        points: &[[f32; 3]],
        normals: &[[f32; 3]],
        triangles: &[[u32; 3]],
        front: bool,
    ) {
        let mut own = vec![u32::MAX; points.len()];
        let faces = triangles.iter().filter(|t| (face_normal(points, t)[2] >= 0.0) == front);
        for &v in faces.flatten() {
            let v = v as usize;
            if own[v] == u32::MAX {
                own[v] = self.positions.len() as u32;
                let p = points[v];
                let across = f32::midpoint(p[0], 0.5);
                self.positions.push(p);
                self.normals.push(normals[v]);
                self.uvs.push([if front { across } else { 1.0 - across }, 0.5 - p[1]]);
            }
            self.indices.push(own[v]);
        }
    }

    /// The triangles over welded vertices: those at one place become one. Gives how many places
    /// there are, and the indices.
    pub fn welded(&self) -> (usize, Vec<u32>) {
        let mut places = std::collections::HashMap::new();
        let place: Vec<u32> = self
            .positions
            .iter()
            .map(|p| {
                let next = places.len() as u32;
                *places.entry(p.map(f32::to_bits)).or_insert(next)
            })
            .collect();
        (places.len(), self.indices.iter().map(|&i| place[i as usize]).collect())
    }
}

pub(crate) fn face_normal(points: &[[f32; 3]], t: &[u32; 3]) -> [f32; 3] {
    let [a, b, c] = t.map(|i| points[i as usize]);
    cross(minus(b, a), minus(c, a))
}

fn smooth_normals(points: &[[f32; 3]], triangles: &[[u32; 3]]) -> Vec<[f32; 3]> {
    let mut normals = vec![[0f32; 3]; points.len()];
    for t in triangles {
        let n = face_normal(points, t);
        for &v in t {
            (0..3).for_each(|c| normals[v as usize][c] += n[c]);
        }
    }
    normals.into_iter().map(|n| unit(n).unwrap_or([0.0, 0.0, 1.0])).collect()
}

fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The vector at length one; none for a zero vector.
pub(crate) fn unit(v: [f32; 3]) -> Option<[f32; 3]> {
    let length = v.iter().map(|c| c * c).sum::<f32>().sqrt();
    (length > 1e-20).then(|| v.map(|c| c / length))
}

//! Signed distance fields: the few solids and joints that the held-out shapes are made of.

pub(super) type Point = [f32; 3];
/// Negative inside.
pub(super) type Sdf = Box<dyn Fn(Point) -> f32 + Send + Sync>;

fn length(p: Point) -> f32 {
    p.iter().map(|c| c * c).sum::<f32>().sqrt()
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn ball(at: Point, r: f32) -> Sdf {
    Box::new(move |p| length(minus(p, at)) - r)
}

pub(super) fn egg(at: Point, r: Point) -> Sdf {
    Box::new(move |p| {
        let q = minus(p, at);
        let k0 = length([q[0] / r[0], q[1] / r[1], q[2] / r[2]]);
        let k1 = length([q[0] / (r[0] * r[0]), q[1] / (r[1] * r[1]), q[2] / (r[2] * r[2])]);
        if k1 < 1e-6 { -r[0].min(r[1]).min(r[2]) } else { k0 * (k0 - 1.0) / k1 }
    })
}

/// A rod from `a` to `b`, its radius going from `ra` to `rb`.
pub(super) fn rod(a: Point, b: Point, ra: f32, rb: f32) -> Sdf {
    let ab = minus(b, a);
    let square = ab.iter().map(|c| c * c).sum::<f32>();
    Box::new(move |p| {
        let ap = minus(p, a);
        let t = (0..3).map(|i| ap[i] * ab[i]).sum::<f32>() / square;
        let t = t.clamp(0.0, 1.0);
        length([0, 1, 2].map(|i| ap[i] - t * ab[i])) - (ra + (rb - ra) * t)
    })
}

pub(super) fn block(at: Point, half: Point, round: f32) -> Sdf {
    Box::new(move |p| {
        let q = minus(p, at);
        let d = [0, 1, 2].map(|i| q[i].abs() - half[i] + round);
        length(d.map(|v| v.max(0.0))) + d[0].max(d[1]).max(d[2]).min(0.0) - round
    })
}

/// An upright drum: radius `r0` at its foot, `r1` at its top.
pub(super) fn drum(at: Point, r0: f32, r1: f32, half: f32) -> Sdf {
    Box::new(move |p| {
        let q = minus(p, at);
        let r = r0 + (r1 - r0) * f32::midpoint(q[1] / half, 1.0).clamp(0.0, 1.0);
        let side = (q[0].hypot(q[2]) - r) * 0.9;
        let lid = q[1].abs() - half;
        side.max(lid).min(0.0) + side.max(0.0).hypot(lid.max(0.0))
    })
}

/// A ring around the axis 0 = x, 1 = y or 2 = z.
pub(super) fn ring(at: Point, axis: usize, big: f32, small: f32) -> Sdf {
    Box::new(move |p| {
        let q = minus(p, at);
        let around = q[(axis + 1) % 3].hypot(q[(axis + 2) % 3]);
        (around - big).hypot(q[axis]) - small
    })
}

/// All of them, joints rounded over `k`.
pub(super) fn union(parts: Vec<Sdf>, k: f32) -> Sdf {
    Box::new(move |p| {
        parts.iter().map(|part| part(p)).reduce(|a, b| soft_min(a, b, k)).unwrap_or(f32::MAX)
    })
}

pub(super) fn without(a: Sdf, b: Sdf) -> Sdf {
    Box::new(move |p| a(p).max(-b(p)))
}

fn soft_min(a: f32, b: f32, k: f32) -> f32 {
    let h = (0.5 + 0.5 * (b - a) / k).clamp(0.0, 1.0);
    b + (a - b) * h - k * h * (1.0 - h)
}

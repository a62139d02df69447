//! The pipeline: nine stages named as the big image-to-3D pipelines name theirs.

use std::path::Path;

use stageload_torch::{EventSink, Residency, StagedModels, Weights, mps_is_available};
use tch::Device;

use crate::camera::Frame;
use crate::distance::nearest;
use crate::glb::Origin;
use crate::matte::rgb_tensor;
use crate::model::Model;
use crate::options::{DeviceChoice, Grid, Load, Options, ShapeChoice};
use crate::output::Output;
use crate::picture::Picture;
use crate::plane::{Mask, Plane};
use crate::poisson::Potential;
use crate::prior::Shape;
use crate::surface::{CUT, Field, extract};
use crate::topology::Topology;
use crate::{Error, Result, matte, outline, relief, simplify, smooth, texture};

const U2NETP: &[u8] = include_bytes!("../weights/u2netp.safetensors");
const SHAPE_PRIOR: &[u8] = include_bytes!("../weights/shape_prior.safetensors");

/// Side at which the structure stage stops and the shape stages go on.
const STRUCTURE_SIDE: usize = 128;

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Vertices written; those on the seam between the charts count twice.
    pub vertices: usize,
    /// Triangles written.
    pub faces: usize,
    /// What the mesh's edges join, seams welded.
    pub topology: Topology,
}

/// Makes a mesh of a picture and writes it with its preview. Events go to `sink`.
///
/// # Errors
/// [`Error`], with nothing left at the output.
pub fn run(options: &Options, sink: EventSink) -> Result<Report> {
    let _inference = tch::no_grad_guard();
    let device = device(options.device)?;
    tch::manual_seed(i64::from(options.seed));
    let mut models = models(residency(options.load), device).events(sink);

    models.enter("setup")?;
    let output = Output::probe(&options.out)?;
    let picture = Picture::open(&options.image)?;

    models.enter("matte")?;
    let matte = matte(&mut models, &picture, &options.image)?;

    models.enter("camera")?;
    let scene = Scene::new(&picture, &matte, options)?;

    models.enter("structure")?;
    let shape = shape(&mut models, &scene, options)?;
    let outlined = outline::smoothed(&scene.matte, device);
    let mut potential = Potential::new(&outlined, &scene.window, device);
    potential.refine(STRUCTURE_SIDE);

    models.enter("shape_512")?;
    potential.refine(Grid::Quick.side());
    if options.grid == Grid::Fine {
        models.enter("shape_1024")?;
    }
    let field = field(potential, &outlined, shape, &scene, options.relief, device);
    refuse_nothing(&field, &options.image)?;

    models.enter("texture")?;
    let atlas = scene.source(&picture, &matte, &field, options, device).atlas();

    models.enter("decode")?;
    let model = decode(&field, options.face_target(), atlas);
    drop(field);

    models.enter("export")?;
    let report = checked(&model)?;
    output.write(&model, &origin(options, &picture))?;
    models.close();
    Ok(report)
}

fn device(choice: DeviceChoice) -> Result<Device> {
    match choice {
        DeviceChoice::Mps | DeviceChoice::Auto if mps_is_available() => Ok(Device::Mps),
        DeviceChoice::Mps => Err(Error::NoDevice),
        DeviceChoice::Cpu | DeviceChoice::Auto => Ok(Device::Cpu),
    }
}

fn residency(load: Load) -> Residency {
    match load {
        Load::Staged => Residency::Staged,
        Load::Eager => Residency::Eager,
    }
}

fn models(residency: Residency, device: Device) -> StagedModels {
    StagedModels::new(residency, device)
        .model("u2netp", |device| Weights::from_safetensors(U2NETP, device))
        .model("shape_prior", |device| Weights::from_safetensors(SHAPE_PRIOR, device))
        .stage("setup", [])
        .stage("matte", ["u2netp"])
        .stage("camera", [])
        .stage("structure", ["shape_prior"])
        .stage("shape_512", [])
        .stage("shape_1024", [])
        .stage("texture", [])
        .stage("decode", [])
        .stage("export", [])
}

/// The subject's square as the camera stage sees it: colours, matte, and what of it the picture has.
pub(crate) fn cut_out(
    picture: &Picture,
    path: &Path,
    side: usize,
) -> Result<(image::RgbImage, Plane, Mask)> {
    let mut models = models(Residency::Staged, Device::Cpu);
    models.enter("matte")?;
    let matte = matte(&mut models, picture, path)?;
    let frame = Frame::around(&matte, path)?;
    let window = frame.window(picture.width(), picture.height(), side);
    Ok((frame.rgb(picture, side), frame.plane(&matte, side), window))
}

fn matte(models: &mut StagedModels, picture: &Picture, path: &Path) -> Result<Plane> {
    if let Some(alpha) = &picture.alpha {
        if alpha.above(0.5).count() == 0 {
            let why = "the picture is all transparent (no pixel is more than half opaque); nothing \
                       is there to make a mesh of";
            return Err(Error::no_subject(path, why));
        }
        return Ok(matte::from_alpha(alpha));
    }
    let device = models.device();
    matte::from_net(models.get("u2netp")?, picture, path, device)
}

/// The subject's square at the grid's size.
struct Scene {
    frame: Frame,
    rgb: image::RgbImage,
    matte: Plane,
    window: Mask,
}

impl Scene {
    fn new(picture: &Picture, matte: &Plane, options: &Options) -> Result<Self> {
        let n = options.grid.side();
        let frame = Frame::around(matte, &options.image)?;
        Ok(Self {
            rgb: frame.rgb(picture, n),
            matte: frame.plane(matte, n),
            window: frame.window(picture.width(), picture.height(), n),
            frame,
        })
    }

    fn source<'a>(
        &self,
        picture: &Picture,
        matte: &Plane,
        field: &'a Field,
        options: &Options,
        device: Device,
    ) -> texture::Source<'a> {
        let side = options.chart_side(self.frame.side());
        texture::Source {
            rgb: self.frame.rgb(picture, side),
            matte: self.frame.plane(matte, side),
            enlargement: side as f64 / self.frame.side(),
            field,
            back: options.back,
            device,
        }
    }
}

fn shape(models: &mut StagedModels, scene: &Scene, options: &Options) -> Result<Shape> {
    match options.shape {
        ShapeChoice::Classical => Ok(Shape::classical(scene.matte.width)),
        ShapeChoice::Learned => {
            let rgb = rgb_tensor(&scene.rgb, models.device());
            Ok(Shape::learned(models.get("shape_prior")?, &rgb, &scene.matte)?)
        }
    }
}

/// Solves the last level and puts everything together to the field whose surface is the mesh.
fn field(
    potential: Potential,
    outlined: &Plane,
    shape: Shape,
    scene: &Scene,
    strength: f32,
    device: Device,
) -> Field {
    let (u, inside) = potential.finish();
    let (mut u, inside) = across_the_edge(u, inside, outlined, &scene.window);
    no_deeper_than_wide(&mut u, &inside);
    let u = outline::signed(&u, &inside, outlined, device);
    let Shape { mid, ratio } = shape;
    let height = u.data.iter().zip(&ratio.data).map(|(u, r)| r * u.max(1e-6).sqrt());
    let height = Plane::new(u.width, u.height, height.collect());
    let relief = relief::relief(&scene.rgb, &inside, &height, strength, device);
    let front = ratio.data.iter().zip(&relief.data).map(|(r, d)| r * (1.0 + d)).collect();
    let front = Plane::new(u.width, u.height, front);
    Field { u: capped(u, &scene.window), front, back: ratio, mid }
}

/// The smoothed outline can lose what the matte still had: hairs and threads.
fn refuse_nothing(field: &Field, path: &Path) -> Result<()> {
    if field.u.data.iter().any(|&u| u > 0.0) {
        return Ok(());
    }
    let why = "the subject is too thin to make a solid of; crop closer to it";
    Err(Error::no_subject(path, why))
}

/// Where the picture ends the subject goes on as its last row or column is, until the cap.
fn across_the_edge(u: Plane, inside: Mask, outlined: &Plane, window: &Mask) -> (Plane, Mask) {
    if window.all() {
        return (u, inside);
    }
    let subject = outlined.above(0.5);
    let mut u = u.gather(&nearest(window));
    for (u, on) in u.data.iter_mut().zip(&subject.data) {
        *u = if *on { *u } else { 0.0 };
    }
    (u, subject)
}

/// A subject that the picture cuts on three sides meets a mirror on each and would swell without end;
/// half its smaller visible side is as far as any whole one rises.
fn no_deeper_than_wide(u: &mut Plane, inside: &Mask) {
    let (width, height) = inside.extent();
    let most = (width.min(height) as f32 / 2.0).powi(2);
    let highest = u.data.iter().copied().fold(0.0, f32::max);
    if highest > most {
        u.data.iter_mut().for_each(|v| *v *= most / highest);
    }
}

/// Closes the subject with a flat face where the picture cuts it.
fn capped(mut u: Plane, window: &Mask) -> Plane {
    for (u, on) in u.data.iter_mut().zip(&window.data) {
        *u = if *on { *u } else { 10.0 * CUT };
    }
    u
}

fn decode(field: &Field, faces: usize, atlas: image::RgbImage) -> Model {
    let mut surface = extract(field);
    smooth::smooth(&mut surface.mesh);
    let mesh = simplify::simplify(surface, faces);
    Model::new(&mesh, field.side(), atlas)
}

fn checked(model: &Model) -> Result<Report> {
    let (points, indices) = model.welded();
    let topology = Topology::of(points, &indices);
    if topology.components == 0 || !topology.is_watertight() {
        return Err(Error::Unsound(format!("{topology:?}")));
    }
    let (vertices, faces) = (model.positions.len(), model.indices.len() / 3);
    Ok(Report { vertices, faces, topology })
}

fn origin(options: &Options, picture: &Picture) -> Origin {
    let wishes = serde_json::json!({
        "grid": options.grid.side(),
        "faces": options.face_target(),
        "texture": options.texture,
        "device": options.device,
        "back": options.back,
        "relief": options.relief,
        "shape": options.shape,
    });
    Origin {
        program: concat!("stageload-mesh ", env!("CARGO_PKG_VERSION")).into(),
        preset: format!("relief {wishes}"),
        seed: options.seed,
        input_sha256: picture.sha256.clone(),
        note: "a quick relief model: the unseen side is a guess".into(),
    }
}

//! The GLB container: one binary glTF 2.0 file with the mesh, its texture and where it came from.

use gltf_json as json;
use image::RgbImage;
use json::validation::Checked::Valid;
use json::validation::USize64;
use serde::Serialize;

use crate::model::Model;

const MAGIC: u32 = 0x4654_6C67;
const JSON_CHUNK: u32 = 0x4E4F_534A;
const BINARY_CHUNK: u32 = 0x004E_4942;

/// Where a mesh came from; written into the file's `asset.extras`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Program and version.
    pub program: String,
    /// The pipeline's name and its settings, as JSON.
    pub preset: String,
    /// Seed of every random choice.
    pub seed: u32,
    /// SHA-256 of the picture's file.
    pub input_sha256: String,
    /// What the mesh is and is not.
    pub note: String,
}

/// The whole file.
pub(crate) fn encode(model: &Model, origin: &Origin) -> Vec<u8> {
    let mut file = File::default();
    let indices =
        file.view(&bytes_of(&model.indices), Some(json::buffer::Target::ElementArrayBuffer));
    let array = Some(json::buffer::Target::ArrayBuffer);
    let positions = file.view(&bytes_of(model.positions.as_flattened()), array);
    let normals = file.view(&bytes_of(model.normals.as_flattened()), array);
    let uvs = file.view(&bytes_of(model.uvs.as_flattened()), array);
    let picture = file.view(&png_bytes(&model.atlas), None);
    let n = model.positions.len();
    let indices = file.accessor(indices, model.indices.len(), Component::U32, Kind::Scalar, None);
    let bounds = Some(bounds(&model.positions));
    let positions = file.accessor(positions, n, Component::F32, Kind::Vec3, bounds);
    let normals = file.accessor(normals, n, Component::F32, Kind::Vec3, None);
    let uvs = file.accessor(uvs, n, Component::F32, Kind::Vec2, None);
    let material = file.material(picture);
    file.scene(indices, [positions, normals, uvs], material);
    file.finish(origin)
}

use json::accessor::{ComponentType as Component, Type as Kind};
type Bounds = (json::Value, json::Value);

#[derive(Default)]
struct File {
    root: json::Root,
    binary: Vec<u8>,
}

impl File {
    fn view(
        &mut self,
        bytes: &[u8],
        target: Option<json::buffer::Target>,
    ) -> json::Index<json::buffer::View> {
        let view = json::buffer::View {
            buffer: json::Index::new(0),
            byte_length: USize64::from(bytes.len()),
            byte_offset: Some(USize64::from(self.binary.len())),
            byte_stride: None,
            name: None,
            target: target.map(Valid),
            extensions: None,
            extras: None,
        };
        self.binary.extend_from_slice(bytes);
        self.binary.resize(self.binary.len().next_multiple_of(4), 0);
        self.root.push(view)
    }

    fn accessor(
        &mut self,
        view: json::Index<json::buffer::View>,
        count: usize,
        component: Component,
        kind: Kind,
        bounds: Option<Bounds>,
    ) -> json::Index<json::Accessor> {
        let (min, max) = bounds.unzip();
        self.root.push(json::Accessor {
            buffer_view: Some(view),
            byte_offset: None,
            count: USize64::from(count),
            component_type: Valid(json::accessor::GenericComponentType(component)),
            type_: Valid(kind),
            min,
            max,
            name: None,
            normalized: false,
            sparse: None,
            extensions: None,
            extras: None,
        })
    }

    fn material(
        &mut self,
        picture: json::Index<json::buffer::View>,
    ) -> json::Index<json::Material> {
        let image = self.root.push(json::Image {
            buffer_view: Some(picture),
            mime_type: Some(json::image::MimeType("image/png".into())),
            uri: None,
            name: None,
            extensions: None,
            extras: None,
        });
        let sampler = self.root.push(json::texture::Sampler {
            wrap_s: Valid(json::texture::WrappingMode::ClampToEdge),
            wrap_t: Valid(json::texture::WrappingMode::ClampToEdge),
            mag_filter: Some(Valid(json::texture::MagFilter::Linear)),
            min_filter: Some(Valid(json::texture::MinFilter::LinearMipmapLinear)),
            ..Default::default()
        });
        let texture = self.root.push(json::Texture {
            source: image,
            sampler: Some(sampler),
            name: None,
            extensions: None,
            extras: None,
        });
        let base_color_texture =
            json::texture::Info { index: texture, tex_coord: 0, extensions: None, extras: None };
        self.root.push(json::Material {
            pbr_metallic_roughness: json::material::PbrMetallicRoughness {
                base_color_texture: Some(base_color_texture),
                metallic_factor: json::material::StrengthFactor(0.0),
                roughness_factor: json::material::StrengthFactor(0.85),
                ..Default::default()
            },
            ..Default::default()
        })
    }

    fn scene(
        &mut self,
        indices: json::Index<json::Accessor>,
        [positions, normals, uvs]: [json::Index<json::Accessor>; 3],
        material: json::Index<json::Material>,
    ) {
        use json::mesh::Semantic::{Normals, Positions, TexCoords};
        let attributes =
            [(Valid(Positions), positions), (Valid(Normals), normals), (Valid(TexCoords(0)), uvs)];
        let mesh = self.root.push(json::Mesh {
            primitives: vec![json::mesh::Primitive {
                attributes: attributes.into_iter().collect(),
                indices: Some(indices),
                material: Some(material),
                mode: Valid(json::mesh::Mode::Triangles),
                targets: None,
                extensions: None,
                extras: None,
            }],
            name: Some("subject".into()),
            weights: None,
            extensions: None,
            extras: None,
        });
        let node = self.root.push(json::Node { mesh: Some(mesh), ..Default::default() });
        let scene = self.root.push(json::Scene {
            nodes: vec![node],
            name: None,
            extensions: None,
            extras: None,
        });
        self.root.scene = Some(scene);
    }

    fn finish(mut self, origin: &Origin) -> Vec<u8> {
        self.root.push(json::Buffer {
            byte_length: USize64::from(self.binary.len()),
            uri: None,
            name: None,
            extensions: None,
            extras: None,
        });
        self.root.asset.generator = Some(origin.program.clone());
        self.root.asset.extras = serde_json::value::to_raw_value(origin).ok();
        let mut text = self.root.to_vec().expect("glTF JSON is made of strings and numbers");
        text.resize(text.len().next_multiple_of(4), b' ');
        container(&text, &self.binary)
    }
}

fn container(text: &[u8], binary: &[u8]) -> Vec<u8> {
    let total = 12 + 8 + text.len() + 8 + binary.len();
    let mut out = Vec::with_capacity(total);
    let word = |out: &mut Vec<u8>, v: u32| out.extend(v.to_le_bytes());
    for v in [MAGIC, 2, total as u32, text.len() as u32, JSON_CHUNK] {
        word(&mut out, v);
    }
    out.extend(text);
    for v in [binary.len() as u32, BINARY_CHUNK] {
        word(&mut out, v);
    }
    out.extend(binary);
    out
}

fn bytes_of<T: Copy + Le>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|v| v.le()).collect()
}

/// Numbers in glTF's byte order.
trait Le {
    fn le(self) -> [u8; 4];
}

impl Le for f32 {
    fn le(self) -> [u8; 4] {
        self.to_le_bytes()
    }
}

impl Le for u32 {
    fn le(self) -> [u8; 4] {
        self.to_le_bytes()
    }
}

fn bounds(points: &[[f32; 3]]) -> Bounds {
    let fold = |f: fn(f32, f32) -> f32, start: f32| {
        let corner = points.iter().fold([start; 3], |a, p| [0, 1, 2].map(|c| f(a[c], p[c])));
        serde_json::json!(corner)
    };
    (fold(f32::min, f32::MAX), fold(f32::max, f32::MIN))
}

/// A picture as PNG, compressed for speed.
pub(crate) fn png_bytes(rgb: &RgbImage) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, rgb.width(), rgb.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().expect("memory takes every write");
    writer.write_image_data(rgb.as_raw()).expect("the picture has the size it says");
    writer.finish().expect("memory takes every write");
    out
}

//! A chart as PNG: our own SVG, drawn by resvg with the fonts of the system. None is embedded.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use crate::failure::Failure;

/// Pixels for each of the SVG's, for screens that have twice as many.
const SCALE: f32 = 2.0;
/// The plain face that is looked for first, by what the systems call it.
const PLAIN: [&str; 6] =
    ["Helvetica Neue", "Helvetica", "Arial", "DejaVu Sans", "Liberation Sans", "Noto Sans"];

/// The bytes of a PNG.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    draw(svg, fonts)
}

fn draw(svg: &str, mut fonts: Database) -> Result<Vec<u8>, Failure> {
    let Some(plain) = plain_family(&fonts) else {
        return Err(Failure::unavailable(
            "cannot draw a PNG: this system has no font for its words; install one (on Debian: \
             fonts-dejavu-core), or plot to a file that ends in .svg"
                .to_owned(),
        ));
    };
    // A family that is not there would leave its words out in silence.
    fonts.set_sans_serif_family(&plain);
    fonts.set_serif_family(&plain);
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| bug(&error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| bug("it has no size"))?;
    let mut image =
        Pixmap::new(size.width(), size.height()).ok_or_else(|| bug("it is too large"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut image.as_mut());
    image.encode_png().map_err(|error| bug(&error.to_string()))
}

fn plain_family(fonts: &Database) -> Option<String> {
    let families = || fonts.faces().flat_map(|face| &face.families).map(|(name, _)| name);
    let known = PLAIN.iter().find_map(|plain| families().find(|name| name == plain));
    known.or_else(|| families().next()).cloned()
}

fn bug(why: &str) -> Failure {
    Failure::internal(format!("cannot draw the chart as PNG: {why}; plot to a .svg instead"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_fonts_is_told_what_to_do() {
        let failure = draw("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", Database::new());
        let words = failure.unwrap_err().to_string();
        assert!(words.contains("no font") && words.contains(".svg"), "{words}");
    }
}

//! One picture to a textured mesh.

//! Two-dimensional arrays of numbers, and their way to tensors and back.

use tch::{Device, Kind, Tensor};

/// `height` rows of `width` numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) data: Vec<f32>,
}

impl Plane {
    pub(crate) fn new(width: usize, height: usize, data: Vec<f32>) -> Self {
        debug_assert_eq!(width * height, data.len());
        Self { width, height, data }
    }

    pub(crate) fn filled(width: usize, height: usize, value: f32) -> Self {
        Self::new(width, height, vec![value; width * height])
    }

    /// Takes a `[height, width]` tensor, with any number of leading ones.
    pub(crate) fn from_tensor(t: &Tensor) -> Self {
        let size = t.size();
        let (height, width) = (size[size.len() - 2] as usize, size[size.len() - 1] as usize);
        Self::new(width, height, to_vec(t))
    }

    /// As a `[1, 1, height, width]` tensor.
    pub(crate) fn tensor(&self, device: Device) -> Tensor {
        Tensor::from_slice(&self.data)
            .view([1, 1, self.height as i64, self.width as i64])
            .to_device(device)
    }

    pub(crate) fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        Self::new(self.width, self.height, self.data.iter().map(|&v| f(v)).collect())
    }

    /// True where the value is above `level`.
    pub(crate) fn above(&self, level: f32) -> Mask {
        Mask {
            width: self.width,
            height: self.height,
            data: self.data.iter().map(|&v| v > level).collect(),
        }
    }

    /// The same shape, each value taken from the pixel `index` names.
    pub(crate) fn gather(&self, index: &[u32]) -> Self {
        let data = index.iter().map(|&i| self.data[i as usize]).collect();
        Self::new(self.width, self.height, data)
    }
}

/// `height` rows of `width` truths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) data: Vec<bool>,
}

impl Mask {
    pub(crate) fn count(&self) -> usize {
        self.data.iter().filter(|&&v| v).count()
    }

    /// Width and height of the box around the true pixels.
    pub(crate) fn extent(&self) -> (usize, usize) {
        let (mut low, mut high) = ((self.width, self.height), (0, 0));
        for (i, _) in self.data.iter().enumerate().filter(|(_, on)| **on) {
            let (x, y) = (i % self.width, i / self.width);
            low = (low.0.min(x), low.1.min(y));
            high = (high.0.max(x + 1), high.1.max(y + 1));
        }
        (high.0.saturating_sub(low.0), high.1.saturating_sub(low.1))
    }

    pub(crate) fn all(&self) -> bool {
        self.data.iter().all(|&v| v)
    }

    pub(crate) fn not(&self) -> Self {
        Self { data: self.data.iter().map(|v| !v).collect(), ..*self }
    }

    pub(crate) fn plane(&self) -> Plane {
        let data = self.data.iter().map(|&v| f32::from(u8::from(v))).collect();
        Plane::new(self.width, self.height, data)
    }
}

/// The numbers of a tensor, row by row.
pub(crate) fn to_vec(t: &Tensor) -> Vec<f32> {
    let flat = t.to_device(Device::Cpu).to_kind(Kind::Float).contiguous().view(-1);
    let mut data = vec![0.0; flat.numel()];
    let len = data.len();
    flat.copy_data(&mut data, len);
    data
}

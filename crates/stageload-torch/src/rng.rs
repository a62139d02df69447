//! A load must not move the random generators: a pipeline that seeds once and draws noise stage
//! by stage would draw other noise if a model were built in between.

use tch::Tensor;

use crate::shim;

/// Runs `f` and puts libtorch's default generators (CPU, and MPS where there is one) back to
/// where they were, also when `f` panics. Generators that `f` makes for itself are not touched.
pub fn preserved_rng<T>(f: impl FnOnce() -> T) -> T {
    let _restore = Restore { cpu: shim::rng_state(false), mps: mps_state() };
    f()
}

fn mps_state() -> Option<Tensor> {
    if shim::mps_is_available() { shim::rng_state(true) } else { None }
}

struct Restore {
    cpu: Option<Tensor>,
    mps: Option<Tensor>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        for (mps, state) in [(false, &self.cpu), (true, &self.mps)] {
            if let Some(state) = state {
                shim::set_rng_state(mps, state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    /// The generator is the process's: tests that seed it take turns.
    fn alone() -> std::sync::MutexGuard<'static, ()> {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn draw() -> Vec<f32> {
        Vec::try_from(Tensor::randn([8], (Kind::Float, Device::Cpu))).unwrap()
    }

    #[test]
    fn drawing_inside_leaves_the_next_draw_outside_as_it_was() {
        let _turn = alone();
        tch::manual_seed(7);
        let expected = (draw(), draw());
        tch::manual_seed(7);
        let first = draw();
        preserved_rng(|| (draw(), draw(), draw()));
        assert_eq!((first, draw()), expected);
    }

    #[test]
    fn the_state_comes_back_after_a_panic() {
        let _turn = alone();
        tch::manual_seed(7);
        let expected = draw();
        tch::manual_seed(7);
        let caught = std::panic::catch_unwind(|| {
            preserved_rng(|| {
                draw();
                panic!("a loader failed")
            })
        });
        assert!(caught.is_err());
        assert_eq!(draw(), expected);
    }
}

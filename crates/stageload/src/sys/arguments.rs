//! The argument area of a process as macOS hands it out (`KERN_PROCARGS2`): a count, the
//! executable, padding, the arguments, the environment. Pure, so every system tests it.

type Words<'a> = Vec<&'a [u8]>;

/// Takes the area apart into arguments and environment.
pub(super) fn split_arguments(raw: &[u8]) -> Option<(Words<'_>, Words<'_>)> {
    let (count, rest) = raw.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let executable_ends = rest.iter().position(|b| *b == 0)?;
    let padded = &rest[executable_ends..];
    let first = padded.iter().position(|b| *b != 0)?;
    let mut words = padded[first..].split(|b| *b == 0);
    let arguments: Words<'_> = words.by_ref().take(count).collect();
    let environment = words.take_while(|word| !word.is_empty()).collect();
    Some((arguments, environment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_splits_into_arguments_and_environment() {
        let mut raw = 2i32.to_ne_bytes().to_vec();
        raw.extend(b"/bin/sh\0\0\0\0sh\0-c\0A=1\0STAGELOAD_JOB=t\0\0garbage");
        let (arguments, environment) = split_arguments(&raw).unwrap();
        assert_eq!(arguments, [b"sh".as_slice(), b"-c"]);
        assert_eq!(environment, [b"A=1".as_slice(), b"STAGELOAD_JOB=t"]);
    }

    #[test]
    fn half_an_area_is_nothing() {
        assert_eq!(split_arguments(b""), None);
        assert_eq!(split_arguments(b"\x01"), None);
        assert_eq!(split_arguments(b"\x01\0\0\0/bin/sh"), None);
        assert_eq!(split_arguments(b"\xff\xff\xff\xff/bin/sh\0sh\0"), None);
    }
}

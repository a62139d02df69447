//! The wall clock, for log lines and the start of a trace. Nothing is decided by it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day as `12:00:00Z`.
pub fn utc_time() -> String {
    let (_, time) = split(seconds_since_1970());
    format!("{time}Z")
}

/// Date and time as `2026-10-06T10:36:12+00:00`, the way the seed's traces have it.
pub fn utc_date_time() -> String {
    let (date, time) = split(seconds_since_1970());
    format!("{date}T{time}+00:00")
}

/// Seconds since 1970, to the millisecond; None on a clock that is set to before that.
pub(crate) fn utc_seconds() -> Option<f64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some((since.as_secs_f64() * 1000.0).round() / 1000.0)
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn split(seconds: u64) -> (String, String) {
    let (year, month, day) = civil(seconds / 86_400);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{h:02}:{m:02}:{s:02}"))
}

/// Days since 1970 as year, month, day, counted in years that begin in March so that the leap
/// day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates_over_leap_years() {
        let table = [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_732, (2026, 10, 6)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ];
        for (days, date) in table {
            assert_eq!(civil(days), date, "{days}");
        }
    }

    #[test]
    fn a_moment_prints_as_the_seed_prints_it() {
        let (date, time) = split(1_791_282_972);
        assert_eq!(format!("{date}T{time}"), "2026-10-06T10:36:12");
    }
}

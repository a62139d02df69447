//! How values stand in their columns.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stageload_core::Bytes;

/// A value as its JSON text.
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        let failed = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        Ok(text.map_err(failed)?.into())
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let read = serde_json::from_slice(value.as_bytes()?).map(Self);
        read.map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

/// A path as text where it is text, else as its bytes: file names need not be UTF-8.
pub(super) struct AnyPath<P>(pub(super) P);

impl ToSql for AnyPath<&Path> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let path = self.0.as_os_str();
        let bytes = || ValueRef::Blob(path.as_bytes());
        let value = path.to_str().map_or_else(bytes, |text| ValueRef::Text(text.as_bytes()));
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl FromSql for AnyPath<PathBuf> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(
            OsString::from_vec(OsStr::from_bytes(value.as_bytes()?).as_bytes().to_vec()).into(),
        ))
    }
}

/// A size as a number of bytes. `SQLite` has no unsigned numbers, and nothing holds 8 EB.
pub(super) fn size(bytes: Option<Bytes>) -> Value {
    let number = |bytes: Bytes| i64::try_from(bytes.0).unwrap_or(i64::MAX);
    bytes.map(number).map_or(Value::Null, Value::Integer)
}

/// What [`size`] wrote.
pub(super) fn read_size(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Bytes>> {
    let number: Option<i64> = row.get(column)?;
    Ok(number.map(|number| Bytes(number.unsigned_abs())))
}

//! Why tables cannot be made.

use std::fmt;
use std::io;

use arrow_schema::ArrowError;
use kymo::timeline::QueryError;
use parquet::errors::ParquetError;

/// Why tables cannot be made or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The query is wrong.
    Query(QueryError),
    /// A file cannot be written.
    Output(io::Error),
    /// Arrow refuses what it was given: an error of this crate.
    Arrow(ArrowError),
    /// The same of Parquet.
    Parquet(ParquetError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(error) => write!(f, "{error}"),
            Self::Output(error) => f.write_str(&kymo_io::reason(error)),
            Self::Arrow(error) => write!(f, "{error}"),
            Self::Parquet(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Output(error),
            error => Self::Arrow(error),
        }
    }
}

impl From<ParquetError> for Error {
    /// An error of the file below it stays one.
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => Self::Output(*error),
                Err(inner) => Self::Parquet(ParquetError::External(inner)),
            },
            error => Self::Parquet(error),
        }
    }
}

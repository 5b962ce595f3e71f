// Package parquet reads Parquet files into batches, and writes batches and tables as
// Parquet files.
//
// A [Reader] turns column pages into vectors, row group by row group; it holds one
// page of each column, the dictionaries of the current row group and one batch. A
// [Writer] takes batches and holds the encoded pages of one row group. [Export] writes
// what a query selects. A reader or writer is used by one goroutine at a time.
//
// # Types
//
// Parquet columns are read as:
//
//	BOOLEAN                               bool
//	INT32, INT64, INT(8..64, signed)      int8, int16, int32, int64
//	INT(8, 16, 32, unsigned)              int16, int32, int64
//	INT(64, unsigned)                     int64; a value that does not fit is an error
//	FLOAT, DOUBLE                         float, double
//	STRING, ENUM, JSON                    string
//	other byte arrays, of fixed length too  binary
//	TIMESTAMP(ms, us, ns), INT96          unixtime_micros; what is finer is floored, also before 1970
//	DATE                                  date
//	TIME(ms), TIME(us, ns)                int32, int64, the number as stored
//	DECIMAL(1..38, s)                     decimal(p, s)
//
// A column is nullable when it is optional in the file. Nested and repeated columns
// and all other types are an [UnsupportedError].
//
// Columns are written as the types they are read from: timestamps in microseconds,
// decimals up to 9 digits as INT32, up to 18 as INT64, wider ones as byte arrays of 16.
// Varchar becomes STRING and loses its length. A file has at least one column.
//
// Pages may be uncompressed or compressed with snappy, gzip, zstd or, when reading,
// brotli.
//
// Invariants:
//
//	I1  A batch never spans two row groups.
//	I2  Rows are never lost silently: a column that ends before its row group is an error.
//	I3  No input makes Open or Next panic.
package parquet

// Package parquet reads Parquet files into batches.
//
// A [Reader] turns column pages into vectors, row group by row group; it holds one
// page of each column, the dictionaries of the current row group and one batch. A
// reader is used by one goroutine at a time.
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
// Invariants:
//
//	I1  A batch never spans two row groups.
//	I2  Rows are never lost silently: a column that ends before its row group is an error.
//	I3  No input makes Open or Next panic.
package parquet

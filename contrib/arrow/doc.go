// Package arrow hands batches to Apache Arrow and back, and reads and writes Arrow IPC
// files and streams.
//
// [Record] and [FromRecord] turn a batch into a record and a record into a batch; where
// the layouts agree, which is nearly everywhere, both see the same memory. A [Reader]
// reads IPC files and streams as batches, a [Writer] writes them, [Scan] yields the rows
// of a query as records and [Export] writes them. Readers and writers are used by one
// goroutine at a time.
//
// # Lifetime
//
// A record of [Record] or [Scan] shares the memory of its batch and lives as long: until
// the scan's next step, whatever Retain says, which counts references and keeps no
// memory here. Make it from [vector.Batch.Detach] to keep it. A batch of [FromRecord]
// shares the memory of the record, which must not be released while the batch is used.
// Neither side may be changed.
//
// # Types
//
//	bool, int8 … int64, float, double     the same
//	string, varchar                       utf8
//	binary                                binary
//	unixtime_micros, date                 timestamp[us, UTC], date32
//	decimal(p, s)                         decimal32, decimal64 or decimal128, by precision
//
// Strings in dictionary form become dictionary arrays with unsigned indices in [Record];
// [Scan] and [Writer], whose records all have one schema, write them out. The other way,
// these are read as well:
//
//	uint8, uint16, uint32                 int16, int32, int64
//	uint64                                int64; a value that does not fit is an error
//	float16                               float
//	large and view strings and binaries   string, binary
//	fixed-size binary                     binary
//	timestamps of all units, date64       unixtime_micros, date; what is finer is floored
//	time32, time64, duration              int32, int64, the number as stored
//	null                                  string, every cell null
//	dictionaries                          the type of their values
//	extensions                            the type of their storage
//
// All others are an [UnsupportedError].
//
// # Byte order
//
// Numbers are in host order on both sides. Bit sets are bytes in Arrow and words in
// a vector, the same memory on little-endian machines and copied on others. Validity
// is copied when it comes from Arrow, which knows neither words nor clean tails.
//
// Invariants:
//
//	I1  FromRecord keeps the invariants of package vector: cells that are null but not
//	    zero make a copy.
//	I2  Rows are counted also where there are no columns.
//	I3  No input makes OpenFile or Next panic.
package arrow

package wal

// Metrics counts what a log did since Start.
type Metrics struct {
	Records      int64 // records appended
	PayloadBytes int64 // bytes of their payloads and extension fields
	WrittenBytes int64 // bytes written, frames and links included
	Groups       int64 // groups written
	LargestGroup int64 // records in the largest one
	Syncs        int64 // file syncs
	Stalls       int64 // waits of Append for the writer of a full buffer
	Trimmed      int64 // segments deleted
	Segments     int64 // segments of the log now
}

// Metrics returns the counters.
func (l *Log) Metrics() Metrics {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mu.metrics
	m.Segments = int64(len(l.mu.segments))
	return m
}

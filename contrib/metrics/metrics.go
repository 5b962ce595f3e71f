package metrics

import (
	"io"
	"net/http"
	"strconv"

	"github.com/minikudu/minikudu"
)

// ContentType is the media type of what [Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// kind is a metric's TYPE.
type kind string

const (
	counter kind = "counter"
	gauge   kind = "gauge"
)

// metric describes one line of the exposition.
type metric struct {
	name  string // without the prefix
	kind  kind
	help  string
	value func(m *minikudu.Metrics) float64
}

// prefix begins every metric's name.
const prefix = "minikudu_"

var all = []metric{
	{"commits_total", counter, "Batches that wrote something.", func(m *minikudu.Metrics) float64 { return float64(m.Commits) }},
	{"rows_written_total", counter, "Rows put, updated or deleted.", func(m *minikudu.Metrics) float64 { return float64(m.RowsWritten) }},
	{"gets_total", counter, "Rows found by key.", func(m *minikudu.Metrics) float64 { return float64(m.Gets) }},
	{"scans_total", counter, "Scans begun.", func(m *minikudu.Metrics) float64 { return float64(m.Scans) }},
	{"rows_scanned_total", counter, "Rows that scans selected.", func(m *minikudu.Metrics) float64 { return float64(m.RowsScanned) }},
	{"flushes_total", counter, "Flushes of memory rowsets.", func(m *minikudu.Metrics) float64 { return float64(m.Flushes) }},
	{"flushed_rows_total", counter, "Rows written by flushes.", func(m *minikudu.Metrics) float64 { return float64(m.FlushedRows) }},
	{"flushed_bytes_total", counter, "Bytes of rowset files written by flushes.", func(m *minikudu.Metrics) float64 { return float64(m.FlushedBytes) }},
	{"flushed_files_total", counter, "Rowset files written by flushes.", func(m *minikudu.Metrics) float64 { return float64(m.FlushedFiles) }},
	{"background_errors_total", counter, "Failed background steps.", func(m *minikudu.Metrics) float64 { return float64(m.BackgroundErrors) }},
	{"delta_flushes_total", counter, "Flushes of changes of disk rowsets.", func(m *minikudu.Metrics) float64 { return float64(m.DeltaFlushes) }},
	{"delta_bytes_total", counter, "Bytes of files written by flushes of changes.", func(m *minikudu.Metrics) float64 { return float64(m.DeltaBytes) }},
	{"compactions_total", counter, "Merging compactions.", func(m *minikudu.Metrics) float64 { return float64(m.Compactions) }},
	{"compacted_bytes_total", counter, "Bytes of rowset files that compactions read.", func(m *minikudu.Metrics) float64 { return float64(m.CompactedBytes) }},
	{"compaction_bytes_total", counter, "Bytes of rowset files that compactions wrote.", func(m *minikudu.Metrics) float64 { return float64(m.CompactionBytes) }},
	{"minor_compactions_total", counter, "Merges of files of changes.", func(m *minikudu.Metrics) float64 { return float64(m.MinorCompactions) }},
	{"minor_compacted_bytes_total", counter, "Bytes of files of changes that minor compactions read.", func(m *minikudu.Metrics) float64 { return float64(m.MinorCompactedBytes) }},
	{"minor_compaction_bytes_total", counter, "Bytes of files of changes that minor compactions wrote.", func(m *minikudu.Metrics) float64 { return float64(m.MinorCompactionBytes) }},
	{"major_compactions_total", counter, "Foldings of changes into columns.", func(m *minikudu.Metrics) float64 { return float64(m.MajorCompactions) }},
	{"major_compacted_bytes_total", counter, "Bytes of columns and changes that major compactions read.", func(m *minikudu.Metrics) float64 { return float64(m.MajorCompactedBytes) }},
	{"major_compaction_bytes_total", counter, "Bytes of files that major compactions wrote.", func(m *minikudu.Metrics) float64 { return float64(m.MajorCompactionBytes) }},
	{"history_drops_total", counter, "Rowsets of which expired history was deleted.", func(m *minikudu.Metrics) float64 { return float64(m.HistoryDrops) }},
	{"rowset_drops_total", counter, "Deletions of rowsets without live rows.", func(m *minikudu.Metrics) float64 { return float64(m.RowSetDrops) }},
	{"dropped_bytes_total", counter, "Bytes of rowset files without live rows that were deleted.", func(m *minikudu.Metrics) float64 { return float64(m.DroppedBytes) }},
	{"running_flushes", gauge, "Flushes in progress, of rows and of changes.", func(m *minikudu.Metrics) float64 { return float64(m.RunningFlushes) }},
	{"running_compactions", gauge, "Compactions in progress, of every kind.", func(m *minikudu.Metrics) float64 { return float64(m.RunningCompactions) }},
	{"tables", gauge, "Tables.", func(m *minikudu.Metrics) float64 { return float64(m.Tables) }},
	{"rowsets", gauge, "Rowset files in use.", func(m *minikudu.Metrics) float64 { return float64(m.RowSets) }},
	{"rowset_bytes", gauge, "Bytes of the rowset files in use.", func(m *minikudu.Metrics) float64 { return float64(m.RowSetBytes) }},
	{"delta_files", gauge, "Files of changes in use.", func(m *minikudu.Metrics) float64 { return float64(m.DeltaFiles) }},
	{"change_bytes", gauge, "Bytes of files of changes that are not merged yet.", func(m *minikudu.Metrics) float64 { return float64(m.ChangeBytes) }},
	{"history_bytes", gauge, "Bytes of files of history.", func(m *minikudu.Metrics) float64 { return float64(m.HistoryBytes) }},
	{"waste_bytes", gauge, "Bytes of files in use that compactions could free.", func(m *minikudu.Metrics) float64 { return float64(m.WasteBytes) }},
	{"pinned_bytes", gauge, "Bytes of history that would be gone but for scans, snapshots and pins.", func(m *minikudu.Metrics) float64 { return float64(m.PinnedBytes) }},
	{"oldest_reader_seconds", gauge, "Age of the oldest state that a scan, snapshot or pin holds.", func(m *minikudu.Metrics) float64 { return m.OldestReader.Seconds() }},
	{"user_bytes_total", counter, "Bytes of batches as they were logged.", func(m *minikudu.Metrics) float64 { return float64(m.UserBytes) }},
	{"log_bytes", gauge, "Bytes of log segments.", func(m *minikudu.Metrics) float64 { return float64(m.LogBytes) }},
	{"log_syncs_total", counter, "Syncs of the log.", func(m *minikudu.Metrics) float64 { return float64(m.LogSyncs) }},
	{"log_groups_total", counter, "Writes of the log, each of one or more commits.", func(m *minikudu.Metrics) float64 { return float64(m.LogGroups) }},
	{"memory_bytes", gauge, "Bytes of rows and changes not yet flushed.", func(m *minikudu.Metrics) float64 { return float64(m.MemoryBytes) }},
	{"memory_limit_bytes", gauge, "Bytes of unflushed rows and changes at which writers wait.", func(m *minikudu.Metrics) float64 { return float64(m.MemoryLimit) }},
	{"stalls_total", counter, "Writes that waited for memory.", func(m *minikudu.Metrics) float64 { return float64(m.Stalls) }},
	{"stall_seconds_total", counter, "Time that writes waited for memory.", func(m *minikudu.Metrics) float64 { return m.StallTime.Seconds() }},
	{"longest_stall_seconds", gauge, "Longest time that a write waited for memory.", func(m *minikudu.Metrics) float64 { return m.LongestStall.Seconds() }},
	{"page_cache_budget_bytes", gauge, "Budget of the page cache.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Budget) }},
	{"page_cache_bytes", gauge, "Bytes of pages held.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Bytes) }},
	{"page_cache_pages", gauge, "Pages held.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Pages) }},
	{"page_cache_hits_total", counter, "Pages found.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Hits) }},
	{"page_cache_misses_total", counter, "Pages read or decoded.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Misses) }},
	{"page_cache_evictions_total", counter, "Pages dropped for room.", func(m *minikudu.Metrics) float64 { return float64(m.PageCache.Evictions) }},
	{"open_files", gauge, "Rowset files open.", func(m *minikudu.Metrics) float64 { return float64(m.OpenFiles) }},
	{"max_open_files", gauge, "Rowset files open at most.", func(m *minikudu.Metrics) float64 { return float64(m.MaxOpenFiles) }},
}

// Write writes the metrics.
func Write(w io.Writer, m minikudu.Metrics) error {
	_, err := w.Write(appendAll(nil, &m))
	return err
}

func appendAll(dst []byte, m *minikudu.Metrics) []byte {
	for i := range all {
		x := &all[i]
		dst = append(dst, "# HELP "+prefix+x.name+" "+x.help+"\n# TYPE "+prefix+x.name+" "+string(x.kind)+"\n"+prefix+x.name+" "...)
		dst = append(strconv.AppendFloat(dst, x.value(m), 'f', -1, 64), '\n')
	}
	return dst
}

// Handler serves the metrics of a store at any path.
func Handler(db *minikudu.DB) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentType)
		_ = Write(w, db.Metrics()) // the client has gone
	})
}

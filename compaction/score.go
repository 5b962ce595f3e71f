package compaction

import "time"

// FlushAfter is the age from which on a store is flushed however small it is.
const FlushAfter = 2 * time.Minute

const (
	mib = 1 << 20

	flushUpper = time.Hour // and is worth as much as a full one after this

	minorFiles = 1000 // REDO files at which merging them is worth most
	majorShare = 0.1  // of REDO to base bytes, below which folding them is not worth it
	quietShare = 0.01 // likewise, while nothing else is to be done
)

// FlushScore returns what flushing a memory store is worth, 0 for nothing, given its
// size, the size at which it should be flushed, and its age: the time since its first
// change, or since the last flush.
// A full store is worth at least 1, and more for each MiB above the threshold.
func FlushScore(bytes, threshold int64, since time.Duration) float64 {
	switch {
	case bytes <= 0:
		return 0
	case bytes >= threshold:
		return max(1, float64(bytes-threshold)/mib)
	case since > FlushAfter:
		return min(1, max(float64(since)/float64(flushUpper), float64(bytes)/float64(threshold)))
	}
	return 0
}

// MinorScore returns what merging the REDO files of a rowset into one is worth.
func MinorScore(files int) float64 {
	if files < 2 {
		return 0
	}
	return min(1, float64(files)/minorFiles)
}

// MajorScore returns what folding REDO files into the base data of a rowset is worth,
// given the bytes of both and the number of columns that have updates. A quiet rowset is not
// written to at present: then even few changes, which every scan applies, are worth it.
func MajorScore(redo, base int64, updatedColumns int, quiet bool) float64 {
	share, least := float64(redo)/float64(max(1, base)), majorShare
	if quiet {
		least = quietShare
	}
	if updatedColumns == 0 || share < least {
		return 0
	}
	return min(1, share)
}

// DeltaStore is a rowset's store of changes in memory.
type DeltaStore struct {
	Bytes int64 // in memory
	Log   int64 // of the log that would be replayed for want of its flush
}

// PickDeltaFlush returns the store to flush, -1 for none: the more memory is used, as
// a share from 0 to 1, the more its size counts and the less the log it holds.
func PickDeltaFlush(stores []DeltaStore, memoryUsed float64) int {
	percent := 100 * min(1, max(0, memoryUsed))
	best, bestScore := -1, 0.0
	for i, s := range stores {
		if s.Bytes <= 0 {
			continue
		}
		score := float64(s.Bytes)*percent + float64(s.Log)*(100-percent)
		if best < 0 || score > bestScore+1 || score >= bestScore-1 && s.Bytes > stores[best].Bytes {
			best, bestScore = i, score
		}
	}
	return best
}

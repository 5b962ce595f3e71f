package diskrowset

import (
	"context"
	"slices"
	"strconv"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// leastCopied is how many pages next to each other are worth copying: the one before them
// and the one after them are cut short by it.
const leastCopied = 4

// storedColumn is a column of a rowset whose pages may be copied.
type storedColumn struct {
	*column
	data  *columnData
	zones *cfile.ZoneMap
}

// Pages returns the number of pages.
func (s *storedColumn) Pages() int { return s.data.index.Pages() }

// Stored returns a column as it lies in the file, nil when some of its cells were changed, or
// it has no data there.
func (n *Snapshot) Stored(ctx context.Context, col int) (rowset.StoredColumn, error) {
	c := n.set.columns[col]
	if c == nil || c.zoneSec.Length == 0 || slices.ContainsFunc(n.stores, func(s delta.Reader) bool { return s.Touches(col) }) {
		return nil, nil
	}
	d, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	z, err := c.zoneMap(ctx)
	if err == nil && len(z.Pages) != d.index.Pages() {
		err = c.damage(errZonePages)
	}
	if err != nil {
		return nil, err
	}
	return &storedColumn{column: c, data: d, zones: z}, nil
}

// within returns the pages that lie wholly in rows [from, to).
func (s *storedColumn) within(from, to int) (first, end int) {
	starts := s.data.index.Starts
	first, _ = slices.BinarySearch(starts, uint32(from))
	end, exact := slices.BinarySearch(starts, uint32(to))
	if !exact {
		end--
	}
	return first, end
}

// short reports whether a page has less than half the rows of others, so that it is better
// joined with what is beside it.
func (s *storedColumn) short(page int) bool {
	from, to := s.data.index.PageRows(page)
	return 2*(to-from)*int64(s.Pages()) < s.rows
}

// plain returns about how many bytes n of its cells take without encoding.
func (s *storedColumn) plain(n int64) int64 {
	switch k := s.typ.Kind(); k {
	case schema.KindBool:
		return (n + 7) / 8
	case schema.KindBytes:
		b, _ := s.data.reader.Metadata(plainBytesKey)
		all, _ := strconv.ParseInt(string(b), 10, 64)
		return int64(float64(all) * float64(n) / float64(s.rows))
	default:
		return n * int64(k.Width())
	}
}

// columnWriter writes a column of a file. Pages that the source has in files it copies where
// it can, other cells it reads and encodes.
type columnWriter struct {
	file  *fileWriter
	part  *part
	col   int // of the schema
	out   *cfile.Writer
	next  int   // rows before it are written
	plain int64 // bytes of the cells without encoding, about
}

// write writes rows [from, to).
func (c *columnWriter) write(from, to int) error {
	c.next = from
	src, ok := c.part.w.src.(rowset.FromFiles)
	for ok && from < to {
		file, at, n, err := src.Stored(c.part.w.ctx, c.col, from, to)
		if err != nil {
			return err
		}
		if s, ok := file.(*storedColumn); ok {
			if err := c.copy(s, at, n, from-at); err != nil {
				return err
			}
		}
		from += n
	}
	return c.encode(to)
}

// copy copies the pages that lie in rows [at, at+n) of a column, if they are worth it. Row r
// there is row r+shift here. Rows beside them are left to be encoded.
func (c *columnWriter) copy(s *storedColumn, at, n, shift int) error {
	first, end := s.within(at, at+n)
	if end-first < leastCopied {
		return nil
	}
	for p := first; p < end; p++ {
		if s.short(p) {
			continue
		}
		if err := c.copyPage(s, p, shift); err != nil {
			return err
		}
	}
	return nil
}

// copyPage copies a page after what is to be encoded before it, unless it cannot be copied.
func (c *columnWriter) copyPage(s *storedColumn, page, shift int) error {
	from, to := s.data.index.PageRows(page)
	if err := c.encode(int(from) + shift); err != nil {
		return err
	}
	ok, err := c.out.CopyPage(c.part.w.ctx, s.data.reader, s.data.index, page, s.zones.Pages[page])
	if !ok || err != nil {
		return err
	}
	c.next = int(to) + shift
	c.plain += s.plain(to - from)
	return c.file.grow(c.part, c.out.EstimatedSize())
}

// encode reads and encodes the rows before row to that are not written.
func (c *columnWriter) encode(to int) error {
	from := c.next
	c.next = to
	return c.part.w.columnPieces(c.col, from, to, func(v *vector.Vector) error {
		c.plain += plainBytes(v)
		if err := c.out.Append(v); err != nil {
			return err
		}
		return c.file.grow(c.part, c.out.EstimatedSize())
	})
}

package cfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/vector"
)

// Verify reads and decodes everything and checks that it agrees: checksums, indexes
// with pages, values with the value index and with the summary in the footer, and that
// no byte of the file is left over.
func (r *Reader) Verify(ctx context.Context) error { return r.VerifyZones(ctx, nil) }

// VerifyZones is Verify and checks that the zone map, unless nil, holds for the pages.
func (r *Reader) VerifyZones(ctx context.Context, zones *ZoneMap) error {
	c := verifier{r: r, zones: zones}
	s, err := r.survey(ctx, func(s *survey, page int, payload []byte) error { return c.page(ctx, s, page, payload) })
	if err != nil {
		return err
	}
	if err := c.checkZones(s.idx.Pages()); err != nil {
		return err
	}
	return c.file()
}

// verifier checks the values of a file, page by page.
type verifier struct {
	r     *Reader
	zones *ZoneMap
	all   vector.Zone
	last  []byte // encoded key of the last value so far, with a value index
}

// checkZones checks that the zone map has a zone for each page.
func (c *verifier) checkZones(pages int) error {
	if c.zones == nil || len(c.zones.Pages) == pages {
		return nil
	}
	return c.r.damaged(partZones, 0, 0, fmt.Errorf("%d zones for %d pages", len(c.zones.Pages), pages))
}

func (c *verifier) page(ctx context.Context, s *survey, i int, payload []byte) error {
	if err := c.checkZones(s.idx.Pages()); err != nil {
		return err
	}
	v, err := c.r.decodePage(ctx, payload, s.idx, i)
	if err != nil {
		return err
	}
	var zone vector.Zone
	zone.Add(v)
	c.all.Merge(zone)
	if c.zones != nil {
		err = covers(&c.zones.Pages[i], &zone)
	}
	if err == nil && s.keys != nil {
		err = c.keys(v, s.keys.Keys.BytesAt(i))
	}
	p := s.idx.ptr(i)
	return c.r.damaged(partData, p.Offset, int64(p.Size), err)
}

// keys checks that the values of a page ascend and that its separator lies between the
// last value before it and its first.
func (c *verifier) keys(v *vector.Vector, separator []byte) error {
	if bytes.Compare(c.last, separator) > 0 {
		return errors.New("value index key sorts before the page before")
	}
	key := []byte(nil)
	for i := range v.Len() {
		key = encoding.AppendKeyCell(key[:0], v.Value(i), true)
		if i == 0 && bytes.Compare(separator, key) > 0 {
			return errors.New("value index key sorts after the page's first value")
		}
		if bytes.Compare(c.last, key) > 0 {
			return fmt.Errorf("value %d sorts before the one before it", i)
		}
		c.last, key = key, c.last
	}
	return nil
}

// file checks the summaries of the whole file.
func (c *verifier) file() error {
	if c.zones != nil {
		if err := covers(&c.zones.File, &c.all); err != nil {
			return c.r.damaged(partZones, 0, 0, err)
		}
	}
	zone, ok, err := c.r.FileZone()
	if err != nil || !ok {
		return err
	}
	return c.r.damaged(partFooter, c.r.dataEnd, c.r.length-c.r.dataEnd, covers(&zone, &c.all))
}

// covers checks that a stored summary z holds for cells whose true summary is t.
func covers(z, t *vector.Zone) error {
	switch {
	case z.Rows != t.Rows || z.Nulls != t.Nulls || z.HasNaN != t.HasNaN:
		return fmt.Errorf("zone of %d rows, %d nulls, NaN %t; the cells have %d, %d, %t",
			z.Rows, z.Nulls, z.HasNaN, t.Rows, t.Nulls, t.HasNaN)
	case !z.Min.IsNull() && (t.Min.IsNull() || z.Min.Compare(t.Min) > 0):
		return errors.New("a cell lies below the zone")
	case !z.Max.IsNull() && (t.Max.IsNull() || z.Max.Compare(t.Max) < 0):
		return errors.New("a cell lies above the zone")
	case z.Exact && (z.Min.Compare(t.Min) != 0 || z.Max.Compare(t.Max) != 0):
		return errors.New("bounds of the zone are not cells")
	}
	return nil
}

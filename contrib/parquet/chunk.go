package parquet

import (
	"fmt"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// chunk reads one column of one row group.
type chunk struct {
	pages    pq.Pages
	kind     schema.Kind
	optional bool
	decode   decoder
	maxPage  int64 // cells that a page can have

	page   pq.Page // nil before the first and after each
	values encoding.Values
	dict   bool   // values are codes of words
	levels []byte // one for each cell, 1 when not null; optional columns
	rows   int    // cells of the page
	at     int    // next cell
	atVal  int    // next value, nulls not counted

	words *vector.Vector // of the chunk's dictionary
	codes []int32        // of the batch's cells so far, while all are in dictionary form
	valid vector.Bitmap  // of the batch
}

// fill makes v, or a vector it returns instead, the next n cells.
func (c *chunk) fill(v *vector.Vector, n int) (_ *vector.Vector, err error) {
	defer recovered(&err)
	v.Reset(c.kind)
	v.Reserve(n)
	c.codes = c.codes[:0]
	if c.optional {
		c.valid = c.valid.Grow(n)
	}
	for done := 0; done < n; {
		if c.at == c.rows {
			if err := c.nextPage(); err != nil {
				return nil, err
			}
			continue
		}
		k := min(n-done, c.rows-c.at)
		vals := k
		if c.optional {
			vals = c.markValid(done, k)
		}
		if err := c.append(v, vals); err != nil {
			return nil, err
		}
		c.at, c.atVal, done = c.at+k, c.atVal+vals, done+k
	}
	c.takeCodes(v, n)
	if c.optional {
		v.Spread(c.valid, n)
	}
	return v, nil
}

// markValid sets the bits of the next k cells that are not null, at row and above, and
// returns their number.
func (c *chunk) markValid(row, k int) int {
	vals := 0
	for i, level := range c.levels[c.at : c.at+k] {
		if level != 0 {
			c.valid.Set(row + i)
			vals++
		}
	}
	return vals
}

// append appends the next n values to v, or to the codes that will become it.
func (c *chunk) append(v *vector.Vector, n int) error {
	if !c.dict {
		if err := c.flatten(v); err != nil {
			return err
		}
		return c.decode(v, &c.values, c.atVal, c.atVal+n)
	}
	codes, err := part(c.values.Int32(), c.atVal, c.atVal+n)
	if err != nil {
		return err
	}
	if err := c.checkCodes(codes); err != nil {
		return err
	}
	if c.kind == schema.KindBytes && v.Len() == 0 {
		c.codes = append(c.codes, codes...)
		return nil
	}
	return v.AppendRows(c.words, codes)
}

func (c *chunk) checkCodes(codes []int32) error {
	top := uint32(0)
	for _, code := range codes {
		top = max(top, uint32(code))
	}
	if len(codes) > 0 && int64(top) >= int64(c.words.Len()) {
		return fmt.Errorf("code %d in a dictionary of %d words", top, c.words.Len())
	}
	return nil
}

// flatten appends the words of the codes so far to v: the batch also has cells that
// are not in dictionary form.
func (c *chunk) flatten(v *vector.Vector) error {
	if len(c.codes) == 0 {
		return nil
	}
	err := v.AppendRows(c.words, c.codes)
	c.codes = c.codes[:0]
	return err
}

// takeCodes makes v a vector in dictionary form when all its cells, room of them with
// the nulls, are codes.
func (c *chunk) takeCodes(v *vector.Vector, room int) {
	if len(c.codes) == 0 {
		return
	}
	switch words := c.words.Len(); {
	case words <= 1<<8:
		v.ResetCodes(1, len(c.codes), room, c.words)
		narrowCodes(vector.Codes[uint8](v), c.codes)
	case words <= 1<<16:
		v.ResetCodes(2, len(c.codes), room, c.words)
		narrowCodes(vector.Codes[uint16](v), c.codes)
	default:
		v.ResetCodes(4, len(c.codes), room, c.words)
		narrowCodes(vector.Codes[uint32](v), c.codes)
	}
}

func narrowCodes[T uint8 | uint16 | uint32](dst []T, codes []int32) {
	for i, code := range codes {
		dst[i] = T(code)
	}
}

// nextPage reads the next page.
func (c *chunk) nextPage() error {
	c.release()
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	c.page, c.values = page, page.Data()
	c.rows, c.at, c.atVal = int(page.NumValues()), 0, 0
	if page.NumValues() > c.maxPage {
		return fmt.Errorf("a page of %d cells in a row group of %d", page.NumValues(), c.maxPage)
	}
	if c.optional {
		c.levels = page.DefinitionLevels()
		c.rows = len(c.levels)
	}
	return c.loadWords()
}

// loadWords decodes the dictionary of the chunk when the page needs it first.
func (c *chunk) loadWords() error {
	dict := c.page.Dictionary()
	c.dict = dict != nil
	if !c.dict || c.words != nil {
		return nil
	}
	words, page := vector.New(c.kind, dict.Len()), dict.Page()
	values := page.Data()
	if err := c.decode(words, &values, 0, dict.Len()); err != nil {
		return fmt.Errorf("dictionary: %w", err)
	}
	c.words = words
	return nil
}

func (c *chunk) release() {
	if c.page != nil {
		pq.Release(c.page)
		c.page = nil
	}
}

func (c *chunk) close() error {
	c.release()
	return c.pages.Close()
}

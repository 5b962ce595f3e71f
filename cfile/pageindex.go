package cfile

import "github.com/minikudu/minikudu/vector"

// PageIndex lists the pages of a file in row order.
type PageIndex struct {
	Starts  []uint32 // first row of each page, and the number of rows at the end
	Offsets []int64  // of each page, relative to the start of the file
	Sizes   []uint32 // bytes of each page on disk
}

// Pages returns the number of pages.
func (x *PageIndex) Pages() int { return len(x.Offsets) }

// PageOf returns the page that holds the row, which must be below Rows.
func (x *PageIndex) PageOf(row int64) int { return 0 }

// KeyIndex holds the value index as a flat array: one separator key per page.
type KeyIndex struct{ Keys *vector.Vector }

// Page returns the page in which a search for key begins.
func (x *KeyIndex) Page(key []byte) int { return 0 }

// SearchPage returns the position of the first cell of a decoded page, ascending and
// without nulls, whose encoded key is at or after key, and whether it is equal.
func SearchPage(page *vector.Vector, key []byte) (pos int, exact bool) { return 0, false }

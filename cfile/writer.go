package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/compress"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	defaultBlockSize = 256 << 10
	minBlockSize     = 512
	// maxCodecBlock leaves room below maxCompressed for a value that overshoots.
	maxCodecBlock = 8 << 20

	maxRows = math.MaxUint32
	// maxPageRows bounds pages of nulls and long runs, which take hardly any bytes.
	maxPageRows = 1 << 20
	// inflation bounds the decoded bytes of a page as a multiple of its target size.
	inflation = 4
)

// Writer writes one column file: pages as they fill, then the indexes, the dictionary
// and the footer. After an error every later call returns that error.
type Writer struct {
	o      WriterOptions
	blocks blockWriter
	enc    *encoding.Encoder
	byRow  *treeWriter // nil without a positional index
	byKey  *treeWriter // nil without a value index

	started  bool // the header is written
	finished bool
	header   []Metadata
	footer   Footer
	page     openPage
	pages    int
	firstKey []byte
	lastKey  []byte // of the page written last
	zones    ZoneMap
	counts   []PageEncoding // of pages with their own encodings
	scratch  *scratch       // lends payload and blocks.buf from start to Finish
	payload  []byte
	err      error
}

// openPage is what the writer knows of the page being filled, beside its encoder.
type openPage struct {
	first int64 // row
	bytes int   // decoded, of prefix-encoded values
	zone  vector.Zone
}

// NewWriter starts a file at the present position of dst. Each block is one call of
// dst.Write; dst need not be buffered.
func NewWriter(dst io.Writer, o WriterOptions) (*Writer, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", o.Column, err)
	}
	kind := o.Type.Kind()
	enc, err := encoding.NewEncoder(encoding.EncoderOptions{
		Format:    encoding.Format{Kind: kind, Encoding: o.Encoding, Nullable: o.Nullable},
		BlockSize: o.BlockSize, MaxRows: pageRows(kind, o.BlockSize), Habit: o.Habit})
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", o.Column, err)
	}
	w := &Writer{o: o, enc: enc, zones: ZoneMap{Kind: kind},
		blocks: blockWriter{dst: dst, codec: o.Compression, checksums: !o.noChecksums}}
	w.footer = Footer{Type: o.Type, Encoding: o.Encoding, Compression: o.Compression, Nullable: o.Nullable, Incompatible: o.features()}
	if !o.NoPositionalIndex {
		w.byRow = newTreeWriter(o.indexBlockSize, w.blocks.write)
	}
	if o.ValueIndex {
		w.byKey = newTreeWriter(o.indexBlockSize, w.blocks.write)
	}
	return w, nil
}

// resolve fills in the defaults and refuses what cannot be written.
func (o WriterOptions) resolve() (WriterOptions, error) {
	kind := o.Type.Kind()
	o.Encoding = o.Encoding.Resolve(kind)
	if o.Encoding == schema.EncodingPaged && o.Compression == schema.CompressionDefault {
		o.Compression = schema.CompressionNone
	}
	o.Compression = o.Compression.Resolve(o.Encoding)
	switch {
	case o.BlockSize <= 0:
		o.BlockSize = defaultBlockSize
	case o.BlockSize < minBlockSize:
		o.BlockSize = minBlockSize
	}
	if o.Compression != schema.CompressionNone || o.Encoding == schema.EncodingPaged {
		o.BlockSize = min(o.BlockSize, maxCodecBlock)
	}
	switch {
	case !o.Type.Valid():
		return o, fmt.Errorf("type %s: %w", o.Type, schema.ErrInvalidArgument)
	case !compress.Supported(o.Compression):
		return o, fmt.Errorf("compression %s: %w", o.Compression, schema.ErrInvalidArgument)
	case o.Encoding == schema.EncodingPaged && o.Compression != schema.CompressionNone:
		return o, fmt.Errorf("compression %s of a file whose pages have their own: %w", o.Compression, schema.ErrInvalidArgument)
	case o.ValueIndex && (o.Nullable || !o.Type.KeyCapable()):
		return o, fmt.Errorf("value index on a %s column, nullable %t: %w", o.Type, o.Nullable, schema.ErrInvalidArgument)
	case o.NoPositionalIndex && !o.ValueIndex:
		return o, fmt.Errorf("no index at all: %w", schema.ErrInvalidArgument)
	}
	return o, nil
}

func (o *WriterOptions) features() uint32 {
	var bits uint32
	if !o.noChecksums {
		bits |= featureChecksum
	}
	if o.Compression >= firstExtended || o.Encoding == schema.EncodingPaged {
		bits |= featureExtended
	}
	return bits
}

// pageRows returns the most rows of a page, so that also a page of nulls or of one long
// run stays near its target size when it is decoded.
func pageRows(kind schema.Kind, blockSize int) int {
	width := kind.Width()
	switch kind {
	case schema.KindBool:
		return maxPageRows
	case schema.KindBytes:
		width = 4 // an offset
	}
	return min(maxPageRows, max(1, inflation*blockSize/width))
}

// AddMetadata adds a pair to the header before the first row, and to the footer
// later. Header and footer hold at most 64 KiB each; Finish fails when they do not fit.
func (w *Writer) AddMetadata(key string, value []byte) {
	p := Metadata{Key: key, Value: bytes.Clone(value)}
	if w.started {
		w.footer.Metadata = append(w.footer.Metadata, p)
	} else {
		w.header = append(w.header, p)
	}
}

// Append adds the cells of v, which may be of any length and in dictionary form.
func (w *Writer) Append(v *vector.Vector) error {
	if w.err == nil && w.finished {
		w.err = fmt.Errorf("file is finished: %w", schema.ErrInvalidArgument)
	}
	if w.err == nil {
		w.err = w.append(v)
	}
	return w.failure()
}

// EndPage ends the open page, so that the cells that follow begin a new one.
func (w *Writer) EndPage() error {
	if w.err == nil && w.enc.Rows() > 0 {
		w.err = w.closePage()
	}
	return w.failure()
}

func (w *Writer) failure() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("writing column %s: %w", w.o.Column, w.err)
}

func (w *Writer) append(v *vector.Vector) error {
	if int64(v.Len()) > maxRows-w.rows() {
		return fmt.Errorf("more than %d rows: %w", int64(maxRows), schema.ErrInvalidArgument)
	}
	if err := w.start(); err != nil {
		return err
	}
	for at := 0; at < v.Len(); {
		end := w.pageLimit(v, at)
		n, err := w.enc.Add(v, at, end)
		if err != nil {
			return err
		}
		if n == 0 && w.enc.Rows() == 0 {
			return fmt.Errorf("encoder %s takes no row", w.o.Encoding)
		}
		w.note(v, at, at+n)
		if n < end-at || w.pageFull() {
			if err := w.closePage(); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// rows returns the number of rows added.
func (w *Writer) rows() int64 { return w.page.first + int64(w.enc.Rows()) }

// pageLimit returns the end of the rows of v from at on that may enter the page. Only
// prefix encoding needs a limit: its values may be far longer than their bytes.
func (w *Writer) pageLimit(v *vector.Vector, at int) int {
	if w.o.Encoding != schema.EncodingPrefix {
		return v.Len()
	}
	limit := inflation * w.o.BlockSize
	i := at
	for ; i < v.Len() && w.page.bytes < limit; i++ {
		w.page.bytes += len(v.BytesAt(i))
	}
	return i
}

func (w *Writer) pageFull() bool {
	return w.enc.Full() || w.page.bytes >= inflation*w.o.BlockSize
}

// note adds rows that entered the page to its summary.
func (w *Writer) note(v *vector.Vector, from, to int) {
	if w.o.NoZones || from == to {
		return
	}
	if from > 0 || to < v.Len() {
		v = v.Slice(from, to)
	}
	w.page.zone.Add(v)
}

// start writes the header.
func (w *Writer) start() error {
	if w.started {
		return nil
	}
	w.started = true
	w.borrow()
	msg := appendHeader(nil, w.header)
	if err := checkMessage(msg); err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(msg)))
	b = append(b, msg...)
	if w.blocks.checksums {
		b = binary.LittleEndian.AppendUint32(b, checksum(b))
	}
	return w.blocks.raw(b)
}

// checkMessage refuses a header or footer message that no reader would open.
func checkMessage(msg []byte) error {
	if len(msg) > maxMessage {
		return fmt.Errorf("metadata of %d bytes, at most %d: %w", len(msg), maxMessage, schema.ErrInvalidArgument)
	}
	return nil
}

// closePage writes the open page, if it has rows, and enters it in the indexes.
func (w *Writer) closePage() error {
	rows := w.enc.Rows()
	if rows == 0 {
		return nil
	}
	w.payload = slices.Grow(w.enc.Finish(w.payload[:0]), checksumSize)
	return w.writePage(w.payload, rows)
}

// writePage writes the payload of a page of so many rows and enters it in the indexes. The
// next page begins.
func (w *Writer) writePage(payload []byte, rows int) error {
	if err := w.countPage(payload); err != nil {
		return err
	}
	p, err := w.blocks.write(payload)
	if err != nil {
		return err
	}
	if err := w.indexPage(p); err != nil {
		return err
	}
	if !w.o.NoZones {
		w.page.zone.Shorten(maxBound)
		w.zones.Pages = append(w.zones.Pages, w.page.zone)
		w.zones.File.Merge(w.page.zone)
	}
	w.pages++
	w.page = openPage{first: w.page.first + int64(rows)}
	w.enc.Reset(uint32(w.page.first))
	return nil
}

// indexPage enters the open page, stored at p, in the indexes.
func (w *Writer) indexPage(p BlockPtr) error {
	if w.byRow != nil {
		var key [4]byte
		binary.BigEndian.PutUint32(key[:], uint32(w.page.first))
		if err := w.byRow.add(key[:], p); err != nil {
			return err
		}
	}
	if w.byKey == nil {
		return nil
	}
	first := w.enc.FirstKey()
	if w.pages == 0 {
		w.firstKey = bytes.Clone(first)
	} else if bytes.Compare(first, w.lastKey) < 0 {
		return fmt.Errorf("row %d sorts before row %d, in a file with a value index: %w", w.page.first, w.page.first-1, schema.ErrInvalidArgument)
	}
	err := w.byKey.add(separator(w.lastKey, first), p)
	w.lastKey = append(w.lastKey[:0], w.enc.LastKey()...)
	return err
}

// EstimatedSize returns the bytes written plus an estimate of what is pending.
func (w *Writer) EstimatedSize() int64 {
	n := w.blocks.off + int64(w.enc.Size()) + int64(w.enc.DictSize())
	for _, t := range []*treeWriter{w.byRow, w.byKey} {
		if t != nil {
			n += int64(t.pending())
		}
	}
	return n
}

// Finish writes what is pending, the indexes, the dictionary and the footer.
func (w *Writer) Finish() (Summary, error) {
	if w.err == nil && w.finished {
		w.err = fmt.Errorf("file is finished: %w", schema.ErrInvalidArgument)
	}
	w.finished = true
	if w.err == nil {
		w.err = w.finish()
		w.release()
	}
	if w.err != nil {
		return Summary{}, w.failure()
	}
	s := Summary{Rows: w.footer.Rows, Bytes: w.blocks.off, Pages: w.pages, Encoding: w.o.Encoding, Compression: w.o.Compression}
	if w.byKey != nil && w.pages > 0 {
		s.FirstKey, s.LastKey = w.firstKey, w.lastKey
	}
	if !w.o.NoZones {
		w.zones.Pages = slices.Clip(w.zones.Pages)
		s.Zones = &w.zones
	}
	return s, nil
}

// borrow takes the buffers of the writer from the pool; release returns them.
func (w *Writer) borrow() {
	w.scratch = getScratch()
	w.payload, w.blocks.buf = w.scratch.plain, w.scratch.raw
}

func (w *Writer) release() {
	w.scratch.plain, w.scratch.raw = w.payload, w.blocks.buf
	w.payload, w.blocks.buf = nil, nil
	w.scratch.put()
	w.scratch = nil
}

func (w *Writer) finish() (err error) {
	if err := w.start(); err != nil {
		return err
	}
	if err := w.closePage(); err != nil {
		return err
	}
	w.footer.Rows = w.page.first
	if w.byRow != nil {
		if w.footer.Positional, err = w.byRow.finish(); err != nil {
			return err
		}
	}
	if w.byKey != nil {
		if w.footer.Value, err = w.byKey.finish(); err != nil {
			return err
		}
	}
	if dict, ok := w.enc.AppendDict(w.payload[:0]); ok {
		if w.footer.Dictionary, err = w.blocks.write(dict); err != nil {
			return err
		}
	}
	return w.writeFooter()
}

func (w *Writer) writeFooter() error {
	if !w.o.NoZones {
		w.footer.Metadata = append(w.footer.Metadata, Metadata{MetadataZone, appendZone(nil, &w.zones.File)})
	}
	w.appendTarget()
	if len(w.counts) > 0 {
		w.footer.Metadata = append(w.footer.Metadata, Metadata{MetadataPages, appendPageEncodings(nil, w.counts)})
	}
	msg := w.footer.appendTo(nil)
	if err := checkMessage(msg); err != nil {
		return err
	}
	b := append(make([]byte, checksumSize, len(msg)+32), msg...)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(msg)))
	binary.LittleEndian.PutUint32(b, checksum(b[checksumSize:]))
	if !w.blocks.checksums {
		b = b[checksumSize:]
	}
	return w.blocks.raw(b)
}

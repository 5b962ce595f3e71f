package csvio

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/minikudu/minikudu/schema"
)

// MaxRecord is the most bytes that one record may have.
const MaxRecord = 64 << 20

const firstBuffer = 256 << 10

// Field is one field of a record. Text is valid until the next record.
type Field struct {
	Text   []byte
	Quoted bool
}

// IsNull reports whether the field stands for null: bare and empty.
func (f Field) IsNull() bool { return !f.Quoted && len(f.Text) == 0 }

// SyntaxError says where a file is no CSV. It answers errors.Is(err,
// schema.ErrInvalidArgument).
type SyntaxError struct {
	Line   int64 // from 1
	Column int   // byte in the line, from 1; 0 for the line as a whole
	Reason string
}

// Error returns the message.
func (e *SyntaxError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Unwrap returns schema.ErrInvalidArgument.
func (e *SyntaxError) Unwrap() error { return schema.ErrInvalidArgument }

// Scanner splits a stream into records.
type Scanner struct {
	src    io.Reader
	buf    []byte
	at     int // start of what is not read yet
	end    int // end of what the buffer holds
	eof    bool
	lines  int64 // line breaks before at
	line   int64 // line on which the current record starts
	fields []Field
}

// NewScanner returns a scanner over r.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{src: r, buf: make([]byte, firstBuffer)}
}

// Line returns the line, from 1, on which the current record starts.
func (s *Scanner) Line() int64 { return s.line }

// Next returns the fields of the next record, valid until the next call, and io.EOF
// after the last. A blank line is a record of one null.
func (s *Scanner) Next() ([]Field, error) {
	record, err := s.record()
	if err != nil {
		return nil, err
	}
	if err := s.split(record); err != nil {
		return nil, err
	}
	return s.fields, nil
}

// record returns the bytes of the next record without its line break.
func (s *Scanner) record() ([]byte, error) {
	s.line = s.lines + 1
	seen, quotes := 0, 0 // bytes looked at, and the quotes among them
	for {
		chunk := s.buf[s.at+seen : s.end]
		n := bytes.IndexByte(chunk, '\n')
		if n < 0 {
			quotes += bytes.Count(chunk, quote)
			seen += len(chunk)
			more, err := s.fill()
			if err != nil {
				return nil, err
			}
			if !more {
				return s.last(seen)
			}
			continue
		}
		quotes += bytes.Count(chunk[:n], quote)
		seen += n + 1
		s.lines++
		if quotes%2 == 0 {
			return s.take(seen), nil
		}
	}
}

var quote = []byte{'"'}

// take consumes n bytes and returns them without the line break at their end.
func (s *Scanner) take(n int) []byte {
	record := s.buf[s.at : s.at+n]
	s.at += n
	record = bytes.TrimSuffix(record, []byte{'\n'})
	return bytes.TrimSuffix(record, []byte{'\r'})
}

// last returns the n bytes after the last line break, io.EOF when there are none.
func (s *Scanner) last(n int) ([]byte, error) {
	if n == 0 {
		return nil, io.EOF
	}
	return s.take(n), nil
}

// fill reads more bytes behind those in the buffer and reports whether there were any.
func (s *Scanner) fill() (more bool, err error) {
	if s.eof {
		return false, nil
	}
	if err := s.makeRoom(); err != nil {
		return false, err
	}
	before, start := s.end, s.end == 0 && s.lines == 0
	for tries := 0; ; tries++ {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		switch {
		case errors.Is(err, io.EOF):
			s.eof = true
		case err != nil:
			return false, fmt.Errorf("reading line %d: %w", s.line, err)
		case n == 0 && tries > 100:
			return false, fmt.Errorf("reading line %d: %w", s.line, io.ErrNoProgress)
		case n == 0, start && s.end < len(byteOrderMark):
			continue
		}
		if start && bytes.HasPrefix(s.buf[:s.end], byteOrderMark) {
			s.at, start = len(byteOrderMark), false
		}
		if more = s.end > max(before, s.at); more || s.eof {
			return more, nil
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// makeRoom moves the unread bytes to the front of the buffer, or doubles it when they
// fill it.
func (s *Scanner) makeRoom() error {
	switch {
	case s.end < len(s.buf):
	case s.at > 0:
		copy(s.buf, s.buf[s.at:s.end])
		s.at, s.end = 0, s.end-s.at
	case len(s.buf) >= MaxRecord:
		reason := fmt.Sprintf("a record of more than %d bytes", MaxRecord)
		if bytes.IndexByte(s.buf, '"') >= 0 {
			reason += "; is a quote not closed?"
		}
		return &SyntaxError{Line: s.line, Reason: reason}
	default:
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	return nil
}

// split cuts a record into fields and unescapes quoted ones in place.
func (s *Scanner) split(record []byte) error {
	s.fields = s.fields[:0]
	for at := 0; ; {
		if at < len(record) && record[at] == '"' {
			n, err := s.quoted(record, at)
			if err != nil {
				return err
			}
			at = n
		} else {
			n := bytes.IndexByte(record[at:], ',')
			if n < 0 {
				n = len(record) - at
			}
			bare := record[at : at+n]
			if q := bytes.IndexByte(bare, '"'); q >= 0 {
				return s.fail(record, at+q, "a quote inside a field that does not begin with one")
			}
			s.fields = append(s.fields, Field{Text: bare})
			at += n
		}
		if at == len(record) {
			return nil
		}
		at++ // the comma
	}
}

// quoted reads the quoted field that starts at position at and returns its end.
func (s *Scanner) quoted(record []byte, at int) (end int, err error) {
	doubled := false
	for end = at + 1; ; end += 2 {
		n := bytes.IndexByte(record[end:], '"')
		if n < 0 {
			return 0, s.fail(record, at, "the quote is not closed")
		}
		end += n
		if end+1 == len(record) || record[end+1] != '"' {
			break
		}
		doubled = true
	}
	text := record[at+1 : end]
	end++
	if end < len(record) && record[end] != ',' {
		return 0, s.fail(record, end, "text after a closing quote")
	}
	if doubled {
		text = unescape(text)
	}
	s.fields = append(s.fields, Field{Text: text, Quoted: true})
	return end, nil
}

// unescape replaces doubled quotes by single ones, in place.
func unescape(text []byte) []byte {
	to := 0
	for from := 0; from < len(text); from++ {
		text[to] = text[from]
		to++
		if text[from] == '"' {
			from++
		}
	}
	return text[:to]
}

// fail returns an error at a position of the record.
func (s *Scanner) fail(record []byte, at int, reason string) error {
	before := record[:at]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &SyntaxError{Line: s.line + int64(bytes.Count(before, []byte{'\n'})), Column: at - lineStart + 1, Reason: reason}
}

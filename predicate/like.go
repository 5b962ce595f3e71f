package predicate

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// pattern is a compiled LIKE pattern: runs of characters between % signs. The first
// run is anchored at the start, the last at the end, those between are found one
// after the other, each at the earliest place, which is right because % matches
// anything.
type pattern struct {
	head, tail run
	mid        []run
	one        bool // no %: head alone must match the whole

	needle string // a text that every match contains, worth to be looked for first
	enough bool   // and whatever contains it matches
}

// run is a sequence of characters without %. Parts are literal texts; between two
// of them stands one _.
type run struct {
	parts []string
	any   int // number of _
}

func (r run) empty() bool { return r.any == 0 && r.parts[0] == "" }

var errTrailingEscape = errors.New("pattern ends with the escape \\")

// compileLike compiles a LIKE pattern: % stands for any run of characters, _ for
// one, \ takes the next character as it is.
func compileLike(s string) (*pattern, error) {
	runs := []run{{parts: []string{""}}}
	for i := 0; i < len(s); i++ {
		r := &runs[len(runs)-1]
		switch s[i] {
		case '%':
			runs = append(runs, run{parts: []string{""}})
			continue
		case '_':
			r.parts, r.any = append(r.parts, ""), r.any+1
			continue
		case '\\':
			if i++; i == len(s) {
				return nil, errTrailingEscape
			}
		}
		r.parts[len(r.parts)-1] += s[i : i+1]
	}
	p := &pattern{head: runs[0], tail: runs[len(runs)-1], one: len(runs) == 1}
	for _, r := range runs[1:max(len(runs)-1, 1)] {
		if !r.empty() {
			p.mid = append(p.mid, r)
		}
	}
	p.setNeedle()
	return p, nil
}

// minNeedle is the least length of a text that is looked for in front of a whole match.
const minNeedle = 3

func (p *pattern) setNeedle() {
	for i := range p.mid {
		for _, part := range p.mid[i].parts {
			if len(part) > len(p.needle) {
				p.needle = part
			}
		}
	}
	p.enough = len(p.mid) == 1 && p.mid[0].any == 0 && p.head.empty() && p.tail.empty()
	if !p.enough && len(p.needle) < minNeedle {
		p.needle = ""
	}
}

// exact returns the only text that matches.
func (p *pattern) exact() (string, bool) { return p.head.parts[0], p.one && p.head.any == 0 }

// prefix returns the text every match starts with; all is set when every text that
// starts with it matches.
func (p *pattern) prefix() (prefix string, all bool) {
	return p.head.parts[0], !p.one && p.head.any == 0 && len(p.mid) == 0 && p.tail.empty()
}

// match reports whether b matches.
func (p *pattern) match(b []byte) bool {
	n, ok := p.head.matchStart(b)
	if !ok {
		return false
	}
	if b = b[n:]; p.one {
		return len(b) == 0
	}
	for i := range p.mid {
		if n = p.mid[i].find(b); n < 0 {
			return false
		}
		b = b[n:]
	}
	return p.tail.matchEnd(b)
}

// matchStart returns the length of the run at the start of b.
func (r *run) matchStart(b []byte) (int, bool) {
	at := 0
	for i, part := range r.parts {
		if i > 0 {
			if at == len(b) {
				return 0, false
			}
			at += charLen(b[at:])
		}
		if len(b)-at < len(part) || string(b[at:at+len(part)]) != part {
			return 0, false
		}
		at += len(part)
	}
	return at, true
}

// find returns the end of the first occurrence of the run in b, -1 when there is none.
func (r *run) find(b []byte) int {
	if r.any == 0 {
		part := r.parts[0]
		i := indexText(b, part)
		if i < 0 {
			return -1
		}
		return i + len(part)
	}
	for at := 0; at < len(b); at += charLen(b[at:]) {
		if r.parts[0] != "" {
			i := indexText(b[at:], r.parts[0])
			if i < 0 {
				return -1
			}
			at += i
		}
		if n, ok := r.matchStart(b[at:]); ok {
			return at + n
		}
	}
	return -1
}

// matchEnd reports whether b ends with the run.
func (r *run) matchEnd(b []byte) bool {
	if r.any == 0 {
		part := r.parts[0]
		return len(b) >= len(part) && string(b[len(b)-len(part):]) == part
	}
	for i := len(r.parts) - 1; ; i-- {
		part := r.parts[i]
		if len(b) < len(part) || string(b[len(b)-len(part):]) != part {
			return false
		}
		if b = b[:len(b)-len(part)]; i == 0 {
			return true
		}
		if len(b) == 0 {
			return false
		}
		_, n := utf8.DecodeLastRune(b)
		b = b[:len(b)-n]
	}
}

func charLen(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return n
}

func indexText(b []byte, s string) int {
	if len(s) == 1 {
		return bytes.IndexByte(b, s[0])
	}
	return strings.Index(unsafeString(b), s)
}

// unsafeString views b as a string for the duration of a call.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

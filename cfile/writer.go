package cfile

import (
	"errors"
	"io"

	"github.com/minikudu/minikudu/vector"
)

var errTodo = errors.New("cfile: not written yet")

// Writer writes one column file.
type Writer struct{}

// NewWriter starts a file at the present position of dst.
func NewWriter(dst io.Writer, o WriterOptions) (*Writer, error) { return nil, errTodo }

// AddMetadata adds a pair to the header before the first row, later to the footer.
func (w *Writer) AddMetadata(key string, value []byte) {}

// Append adds the cells of v, which may be in dictionary form.
func (w *Writer) Append(v *vector.Vector) error { return errTodo }

// EstimatedSize returns the bytes written plus an estimate of what is pending.
func (w *Writer) EstimatedSize() int64 { return 0 }

// Finish writes what is pending, the indexes and the footer.
func (w *Writer) Finish() (Summary, error) { return Summary{}, errTodo }

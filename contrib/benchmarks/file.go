package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
)

// scanOnly is what the file formats have no means for.
type scanOnly struct{}

func (scanOnly) Settle() error                            { return nil }
func (scanOnly) Get(Row, Row) (bool, error)               { return false, errCannot }
func (scanOnly) GetColumns(Row, []int, Row) (bool, error) { return false, errCannot }
func (scanOnly) Range(*Range) (Answer, error)             { return Answer{}, errCannot }
func (scanOnly) Update(_ []Row, _ int, _ []int64) error   { return errCannot }

// fileWriter is a file that is being written through a buffer.
type fileWriter struct {
	path string
	file *os.File
	*bufio.Writer
}

func createFile(dir, name string) (*fileWriter, error) {
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &fileWriter{path: path, file: f, Writer: bufio.NewWriterSize(f, 1<<20)}, nil
}

// close makes the file durable.
func (w *fileWriter) close() error {
	return errors.Join(w.Flush(), w.file.Close(), syncFile(w.path))
}

// shares deals n things to threads, in turns.
func shares(n, threads int) [][]int {
	out := make([][]int, min(n, threads))
	for i := range n {
		out[i%len(out)] = append(out[i%len(out)], i)
	}
	return out
}

// keptRows is the rows of a row group that a filter keeps.
type keptRows struct {
	all  bool
	keep []bool
}

// count returns how many of n rows are kept.
func (k *keptRows) count(n int) int64 {
	if k.all {
		return int64(n)
	}
	total := int64(0)
	for _, keep := range k.keep {
		if keep {
			total++
		}
	}
	return total
}

// sum adds up the cells, which begin at the given row, of the rows that are kept.
func sumKept[T int64 | float64](k *keptRows, row int, cells []T) (sum float64) {
	if k.all {
		for _, c := range cells {
			sum += float64(c)
		}
		return sum
	}
	for i, keep := range k.keep[row : row+len(cells)] {
		if keep {
			sum += float64(cells[i])
		}
	}
	return sum
}

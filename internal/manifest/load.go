package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/minikudu/minikudu/vfs"
)

// ErrInterrupted says that the store was never completely created: its first and only
// generation is incomplete. Create starts again if the directory holds nothing else.
var ErrInterrupted = errors.New("creation of the store was interrupted")

// maxFileBytes bounds the file that is read into memory.
const maxFileBytes = 1 << 30

const namePrefix = "MANIFEST-"

// Name returns the file name of a generation.
func Name(generation uint64) string { return fmt.Sprintf("%s%06d", namePrefix, generation) }

// ParseName returns the generation of a file name, false for names of other files.
func ParseName(name string) (generation uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && Name(n) == name
}

// generations returns the generations in dir, ascending.
func generations(f vfs.FS, dir string) ([]uint64, error) {
	names, err := f.List(dir)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, name := range names {
		if n, ok := ParseName(name); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// loaded is a generation that counts.
type loaded struct {
	generation uint64
	state      *State
	end        int64 // offset of the next frame
	size       int64
	snapshot   int64   // size of the file up to the snapshot's end
	dirty      bool    // bytes behind end are not zeroes
	bare       []int64 // slots without their mark
}

// load reads the highest generation that counts among those in dir, ascending.
func load(f vfs.FS, dir string, all []uint64) (*loaded, error) {
	for _, n := range slices.Backward(all) {
		l, err := loadGeneration(f, f.Join(dir, Name(n)), n, nil)
		if !errors.Is(err, errIncomplete) {
			return l, err
		}
	}
	switch {
	case len(all) == 0:
		return nil, &fs.PathError{Op: "open", Path: f.Join(dir, Name(1)), Err: fs.ErrNotExist}
	case all[len(all)-1] == 1:
		return nil, &vfs.CorruptionError{Path: f.Join(dir, Name(1)), Section: "manifest snapshot", Err: ErrInterrupted}
	}
	return nil, &vfs.CorruptionError{Path: f.Join(dir, Name(all[len(all)-1])), Section: "manifest snapshot",
		Err: fmt.Errorf("%w, and there is no older generation; restore the file from a backup", errIncomplete)}
}

func loadGeneration(f vfs.FS, path string, generation uint64, visit func(Record) error) (*loaded, error) {
	b, err := readFile(f, path)
	if err != nil {
		return nil, err
	}
	p := &parser{b: b, path: path, seed: seed(generation), visit: visit}
	if err := p.parse(generation); err != nil {
		return nil, err
	}
	return &loaded{generation: generation, state: p.state, end: p.off, size: int64(len(b)), snapshot: p.snap,
		dirty: !isZero(b[p.off:]), bare: p.bare}, nil
}

func readFile(f vfs.FS, path string) ([]byte, error) {
	file, err := f.Open(path, vfs.KindManifest)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > maxFileBytes {
		return nil, &vfs.CorruptionError{Path: path, Section: "manifest", Err: fmt.Errorf("%d bytes, at most %d", size, maxFileBytes)}
	}
	b := make([]byte, size)
	n, err := file.ReadAt(b, 0)
	if err != nil && !(err == io.EOF && n == len(b)) {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return b, nil
}

// Record is a frame as Dump shows it.
type Record struct {
	Offset, Length int64
	Type           FrameType
	Edit           *Edit // nil for the end of the snapshot
}

// Dump calls visit for every frame of one generation's file, in order, and returns
// the state that they make.
func Dump(f vfs.FS, dir string, generation uint64, visit func(Record) error) (*State, error) {
	path := f.Join(dir, Name(generation))
	l, err := loadGeneration(f, path, generation, visit)
	if errors.Is(err, errIncomplete) {
		return nil, &vfs.CorruptionError{Path: path, Section: "manifest snapshot", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return l.state, nil
}

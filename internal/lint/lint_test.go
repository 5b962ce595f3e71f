package lint

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/minikudu/minikudu"

type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
	Module       *struct{ Path string }
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,GoFiles,Imports,TestImports,XTestImports,Standard,Module"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// short is the import path within the module, "." for the root.
func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// edges lists, for every package of the engine, the packages of the module that its
// production code may import. A package that is not named here may import anything
// (commands, bridges, benchmarks).
var edges = map[string][]string{
	"schema":               {},
	"vfs":                  {},
	"vfs/errorfs":          {"vfs"},
	"vector":               {"schema", "internal/kernel"},
	"internal/binfmt":      {"vfs"},
	"internal/cache":       {},
	"internal/compress":    {"schema", "vfs"},
	"internal/filter":      {},
	"internal/kernel":      {},
	"internal/filecache":   {"vfs"},
	"internal/mvcc":        {},
	"encoding":             {"schema", "vector", "vfs", "internal/compress", "internal/binfmt", "internal/kernel"},
	"predicate":            {"schema", "vector", "encoding", "internal/kernel"},
	"internal/aggregate":   {"schema", "vector", "internal/kernel"},
	"internal/record":      {"schema", "vector", "internal/binfmt"},
	"internal/rowset":      {"schema", "vector", "predicate", "internal/mvcc", "internal/filter"},
	"internal/delta":       {"schema", "vector", "internal/rowset", "internal/mvcc"},
	"internal/manifest":    {"schema", "vfs", "internal/binfmt", "internal/mvcc", "internal/rowset"},
	"cfile":                {"schema", "vector", "vfs", "encoding", "internal/binfmt", "internal/compress"},
	"compaction":           {"schema", "vector", "vfs", "internal/mvcc", "internal/rowset"},
	"memrowset":            {"internal/delta", "schema", "vector", "encoding", "predicate", "internal/rowset", "internal/mvcc", "internal/filter"},
	"diskrowset":           {"internal/delta", "schema", "vector", "vfs", "encoding", "predicate", "cfile", "internal/rowset", "internal/mvcc", "internal/filter", "internal/kernel", "internal/binfmt", "internal/cache", "internal/filecache"},
	"wal":                  {"vfs", "internal/binfmt", "internal/mvcc"},
	"tablet":               {"internal/delta", "schema", "vector", "vfs", "encoding", "predicate", "memrowset", "diskrowset", "compaction", "internal/rowset", "internal/mvcc"},
	".":                    {"schema", "vector", "vfs", "encoding", "predicate", "tablet", "memrowset", "diskrowset", "compaction", "cfile", "wal", "internal/aggregate", "internal/binfmt", "internal/cache", "internal/filecache", "internal/manifest", "internal/mvcc", "internal/record", "internal/rowset"},
	"internal/devtools":    {},
	"internal/lint":        {},
	"internal/testkit":     nil,
	"contrib/arrow":        {".", "schema", "vector", "predicate"},
	"contrib/metrics":      {"."},
	"contrib/parquet":      {".", "schema", "vector", "predicate"},
	"internal/cli/csvio":   {"schema", "vector"},
	"internal/cli/sqltext": {"schema", "predicate", "."},
}

func TestImportEdges(t *testing.T) {
	for _, p := range list(t, "./...") {
		allowed, known := edges[short(p.ImportPath)]
		if !known || allowed == nil {
			if !strings.HasPrefix(short(p.ImportPath), "cmd/") && !strings.HasPrefix(short(p.ImportPath), "internal/cli") && !known {
				t.Errorf("package %s is not in the list of edges", short(p.ImportPath))
			}
			continue
		}
		for _, i := range p.Imports {
			if i == module || strings.HasPrefix(i, module+"/") {
				if !slices.Contains(allowed, short(i)) {
					t.Errorf("%s must not import %s", short(p.ImportPath), short(i))
				}
			}
		}
	}
}

// engineModules are the only modules, besides the standard library, that a program
// compiles because it imports the root package.
var engineModules = []string{
	module,
	"github.com/golang/snappy",
	"github.com/pierrec/lz4/v4",
	"github.com/bits-and-blooms/bloom/v3",
	"github.com/bits-and-blooms/bitset", // bloom stands on it
	"github.com/google/btree",
	"github.com/klauspost/compress", // zlib, zstd
	"golang.org/x/sys",              // fdatasync, fallocate, locks, processor features
}

func TestRootCompileClosure(t *testing.T) {
	for _, p := range list(t, "-deps", ".") {
		switch {
		case p.Standard:
		case p.Module == nil || !slices.Contains(engineModules, p.Module.Path):
			t.Errorf("the root package compiles %s", p.ImportPath)
		case short(p.ImportPath) == "vfs/errorfs" || short(p.ImportPath) == "internal/testkit":
			t.Errorf("production code imports the test package %s", p.ImportPath)
		}
	}
}

func TestCompressionLibrariesHaveOneImporter(t *testing.T) {
	libraries := []string{"github.com/golang/snappy", "github.com/pierrec/lz4", "github.com/klauspost/compress", "compress/zlib"}
	for _, p := range list(t, "./...") {
		if short(p.ImportPath) == "internal/compress" {
			continue
		}
		for _, i := range p.Imports {
			for _, l := range libraries {
				if strings.HasPrefix(i, l) {
					t.Errorf("%s imports %s; use internal/compress", short(p.ImportPath), i)
				}
			}
		}
	}
}

func TestEverythingIsDocumented(t *testing.T) {
	for _, p := range list(t, "./...") {
		if len(p.GoFiles) == 0 {
			continue
		}
		checkDocs(t, p)
	}
}

func checkDocs(t *testing.T, p pkg) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(fset, files, p.ImportPath)
	if err != nil {
		t.Fatal(err)
	}
	path := short(p.ImportPath)
	if len(d.Doc) < 60 {
		t.Errorf("package %s has no package comment worth the name", path)
	}
	if p.Name == "main" {
		return
	}
	if _, err := fs.Stat(dirFS(p.Dir), "doc.go"); err != nil {
		t.Errorf("package %s has no doc.go", path)
	}
	missing := func(name, text string) {
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s.%s has no comment", path, name)
		}
	}
	for _, f := range d.Funcs {
		missing(f.Name, f.Doc)
	}
	for _, typ := range d.Types {
		missing(typ.Name, typ.Doc)
		for _, f := range append(typ.Funcs, typ.Methods...) {
			missing(typ.Name+"."+f.Name, f.Doc)
		}
		checkValues(append(typ.Consts, typ.Vars...), missing)
	}
	checkValues(append(d.Consts, d.Vars...), missing)
}

// checkValues wants a comment on the group or on each of its names.
func checkValues(values []*doc.Value, missing func(name, text string)) {
	for _, v := range values {
		if strings.TrimSpace(v.Doc) != "" {
			continue
		}
		for _, s := range v.Decl.Specs {
			spec := s.(*ast.ValueSpec)
			for _, n := range spec.Names {
				if n.IsExported() {
					missing(n.Name, spec.Doc.Text()+spec.Comment.Text())
				}
			}
		}
	}
}

func dirFS(dir string) fs.FS { return os.DirFS(dir) }

package minikudu_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exampleBody returns the source of the body of a function in example_test.go,
// without its indentation.
func exampleBody(t *testing.T, name string) string {
	const file = "example_test.go"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			body := src[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
			return strings.ReplaceAll(string(bytes.TrimSpace(body)), "\n\t", "\n")
		}
	}
	t.Fatalf("no %s in %s", name, file)
	return ""
}

// The example of the README is the one that is compiled and run.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)\n```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("no Go block in README.md")
	}
	if want := exampleBody(t, "Example"); string(block[1]) != want {
		t.Errorf("the example in README.md differs from Example in example_test.go, which is:\n%s", want)
	}
}

// Every page is reached from an index: design pages from docs/design/README.md, format
// pages from docs/format.md, the others from the README or the architecture.
func TestDocumentationIndex(t *testing.T) {
	for pattern, indexes := range map[string][]string{"docs/design/*.md": {"docs/design/README.md"}, "docs/format/*.md": {"docs/format.md"},
		"docs/*.md": {"README.md", "docs/architecture.md"}} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, index := range indexes {
			b, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, b...)
		}
		for _, page := range pages {
			if name := filepath.Base(page); name != "README.md" && !bytes.Contains(text, []byte(name+")")) {
				t.Errorf("%s is not in %s", page, strings.Join(indexes, " or "))
			}
		}
	}
}

// Links between pages have targets.
func TestDocumentationLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

// Command gen writes the assembly of package kernel and the Go declarations of its functions.
package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// families are the files to write, name_amd64.s and name_amd64.go each.
var families = []struct {
	name  string
	build func(*build.Context)
}{
	{"shuffle", shuffle},
	{"compare", compare},
	{"unpack", unpack},
	{"aggregate", aggregate},
	{"spread", spread},
	{"search", search},
	{"gather", gather},
}

func main() {
	for _, f := range families {
		if err := write(f.name, f.build); err != nil {
			fmt.Fprintln(os.Stderr, f.name, err)
			os.Exit(1)
		}
	}
}

func write(name string, f func(*build.Context)) error {
	c := build.NewContext()
	c.ConstraintExpr("amd64,!purego")
	f(c)
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	cfg := printer.Config{Name: "go generate", Argv: []string{"go", "generate", "./internal/kernel"}, Pkg: "kernel"}
	for suffix, p := range map[string]printer.Printer{"s": printer.NewGoAsm(cfg), "go": printer.NewStubs(cfg)} {
		out, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile("../"+name+"_amd64."+suffix, out, 0o666); err != nil {
			return err
		}
	}
	return nil
}

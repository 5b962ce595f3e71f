package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The session that the README shows is what the commands print, times excepted.
func TestReadmeSession(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```console\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("no console block in README.md")
	}
	t.Chdir(t.TempDir())
	for _, step := range strings.Split(string(block[1]), "$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		args := shellWords(command)
		switch args[0] {
		case "cat":
			if err := os.WriteFile(args[1], []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		case "minikudu":
			var stdout, stderr bytes.Buffer
			Run(context.Background(), args[1:], strings.NewReader(""), &stdout, &stderr)
			if got := stderr.String() + stdout.String(); withoutTimes(got) != withoutTimes(want) {
				t.Errorf("%s\ngot\n%swant\n%s", command, got, want)
			}
		default:
			t.Fatalf("the test knows no %q", args[0])
		}
	}
}

// shellWords splits a command at blanks that are not in double quotes.
func shellWords(command string) (words []string) {
	for _, m := range regexp.MustCompile(`"([^"]*)"|\S+`).FindAllStringSubmatch(command, -1) {
		if m[1] != "" {
			m[0] = m[1]
		}
		words = append(words, m[0])
	}
	return words
}

// withoutTimes replaces what differs from run to run.
func withoutTimes(text string) string {
	return regexp.MustCompile(`(?m)^(seconds|rows_per_s) .*$`).ReplaceAllString(text, "$1")
}

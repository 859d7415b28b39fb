package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// invocation is how a person calls this program again.
type invocation struct {
	program string
	inside  bool // it is called inside of the repository, otherwise with -C
}

// invocation looks how this program was called.
func (a *app) invocation() invocation {
	exe, err := os.Executable()
	if err != nil {
		return invocation{"pfl-forge", true}
	}
	return a.invocationOf(exe)
}

// invocationOf is invocation for a program file. What `go run` built is gone as soon
// as it ends, so then it is called by `go run` again.
func (a *app) invocationOf(exe string) invocation {
	if strings.Contains(exe, string(filepath.Separator)+"go-build") {
		if _, err := os.Stat(filepath.FromSlash("cmd/pfl-forge/main.go")); err != nil {
			return invocation{"go run github.com/pfl-forge/pfl-forge/cmd/pfl-forge", false}
		}
		return invocation{"go run ./cmd/pfl-forge", false}
	}
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
		if sameFile(filepath.Join(dir, "pfl-forge"), exe) {
			return invocation{"pfl-forge", true}
		}
	}
	return invocation{quote(exe), true}
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// command returns a line for a POSIX shell.
func (i invocation) command(dir string, args ...string) string {
	words := []string{"cd", quote(dir), "&&", i.program}
	if !i.inside {
		words = []string{i.program, "-C", quote(dir)}
	}
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// quote returns a word as a POSIX shell reads it.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

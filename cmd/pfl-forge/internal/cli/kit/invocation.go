package kit

import (
	"os"
	"path/filepath"
	"strings"
)

// Invocation is the way in which a person calls this program again, for commands that are
// printed to be pasted.
type Invocation struct {
	// Program is the program as a shell reads it.
	Program string
	// Inside says that it is called inside of the repository; otherwise
	// commands have -C.
	Inside bool
}

// Invocation returns how this program was called: by its name if the PATH has it, by its
// path, or by go run.
func (a *App) Invocation() Invocation {
	exe, err := os.Executable()
	if err != nil {
		return Invocation{"pfl-forge", true}
	}
	return a.invocationOf(exe)
}

// invocationOf returns how the program in a file is called again. What `go run`
// built is gone as soon as it ends, so then it is called by `go run` again.
func (a *App) invocationOf(exe string) Invocation {
	if strings.Contains(exe, string(filepath.Separator)+"go-build") {
		if _, err := os.Stat(filepath.FromSlash("cmd/pfl-forge/main.go")); err != nil {
			return Invocation{"go run github.com/pfl-forge/pfl-forge/cmd/pfl-forge", false}
		}
		return Invocation{"go run ./cmd/pfl-forge", false}
	}
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		if SameFile(filepath.Join(dir, "pfl-forge"), exe) {
			return Invocation{"pfl-forge", true}
		}
	}
	return Invocation{Quote(exe), true}
}

// SameFile reports whether two paths lead to one file that exists.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Command returns the line for a POSIX shell that runs a command in a folder.
func (i Invocation) Command(dir string, args ...string) string {
	words := []string{"cd", Quote(dir), "&&", i.Program}
	if !i.Inside {
		words = []string{i.Program, "-C", Quote(dir)}
	}
	for _, a := range args {
		words = append(words, Quote(a))
	}
	return strings.Join(words, " ")
}

// Quote returns a word so that a POSIX shell reads it as one word.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

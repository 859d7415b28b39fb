// Package credentials reads what agents log in with: variables such as ANTHROPIC_API_KEY, from
// the process's environment, or from a directory with one file for each, such as a mounted
// Secret. A file can be replaced while the process runs, so a directory is read again for each
// use, and nothing of it is kept.
//
// Errors name the file and say what to do. They never hold what is in it.
package credentials

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	// maxSize bounds a file, in bytes: more does not fit into an environment or a header.
	maxSize = 64 << 10
	// reads bounds how often a directory is read that is replaced meanwhile.
	reads = 5
	// current is the link to the newest version of a mounted Secret. It is replaced as a
	// whole, and the version before is removed.
	current = "..data"
)

// ErrUnreadable is wrapped by every error about a file or the directory: whoever runs the
// service has to mend it, and no task is at fault.
var ErrUnreadable = errors.New("the credentials cannot be read")

// Dir is a directory with one file for each variable, of the variable's name.
type Dir struct {
	// Path is the directory.
	Path string
	// Setting names where Path was given, for errors.
	Setting string
}

// Variables are those of one moment. A file takes the place of the environment's variable of
// its name. The zero value has the environment's alone.
type Variables struct {
	// files has the contents of the files, without white space around them.
	files map[string]string
	// problems says by name which files cannot be used, and why.
	problems map[string]error
	// lost says why the directory cannot be read; nil if it was.
	lost error
}

// variable matches the names of files that are variables. Others, such as notes beside them,
// are not read.
var variable = pattern.New(`^[A-Z_][A-Z0-9_]*$`)

// Read returns the variables as they are now. All files are of one version of a mounted
// Secret, so that a key never meets the address of another one.
func (d Dir) Read() Variables {
	for range reads {
		version := d.version()
		if v := d.read(); version == d.version() {
			return v
		}
	}
	return Variables{lost: d.problem(fmt.Errorf("%s is replaced all the time", d.Path))}
}

// version identifies the content of a mounted Secret; empty for a directory that is none.
func (d Dir) version() string {
	to, err := os.Readlink(filepath.Join(d.Path, current))
	if err != nil {
		return ""
	}
	return to
}

// read reads every file once.
func (d Dir) read() Variables {
	v := Variables{files: map[string]string{}, problems: map[string]error{}}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		v.lost = d.problem(err)
		return v
	}
	for _, e := range entries {
		if !variable.MatchString(e.Name()) {
			continue
		}
		text, err := readLine(filepath.Join(d.Path, e.Name()))
		if err != nil {
			v.problems[e.Name()] = d.problem(err)
			continue
		}
		v.files[e.Name()] = text
	}
	return v
}

// problem returns an error with the setting that it is about.
func (d Dir) problem(err error) error {
	return fmt.Errorf("%s: %w: %w", d.Setting, ErrUnreadable, err)
}

// Check returns an error unless the directory is one. What is in it may come later.
func (d Dir) Check() error {
	info, err := os.Stat(d.Path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory: give the one that holds a file for each variable", d.Path)
	}
	return nil
}

// readLine returns the one line of a file, without white space around it.
func readLine(path string) (string, error) {
	// Before it is opened: opening a pipe would wait for whoever writes to it.
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSize {
		return "", fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxSize)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	switch {
	case text == "":
		return "", fmt.Errorf("%s is empty: put the value into it, or remove the file", path)
	case len(b) > maxSize || strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%s does not hold one line of text of at most %d bytes", path, maxSize)
	}
	return text, nil
}

// Lookup returns a variable; empty if there is none.
func (v Variables) Lookup(name string) (string, error) {
	if text, ok := v.files[name]; ok {
		return text, nil
	}
	if err := v.problems[name]; err != nil {
		return "", err
	}
	return environ.Get(name), v.lost
}

// Prefixed returns the variables whose names begin with a prefix, as NAME=VALUE in the order
// of their names, without the prefix.
func (v Variables) Prefixed(prefix string) ([]string, error) {
	names := map[string]bool{}
	for _, kv := range environ.All() {
		name, _, _ := strings.Cut(kv, "=")
		names[name] = true
	}
	for name := range v.files {
		names[name] = true
	}
	for name := range v.problems {
		names[name] = true
	}
	var out []string
	for name := range names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest == "" {
			continue
		}
		value, err := v.Lookup(name)
		if err != nil {
			return nil, err
		}
		out = append(out, rest+"="+value)
	}
	slices.Sort(out)
	return out, v.lost
}

// Err returns everything that is wrong with the directory and its files; nil if nothing is.
func (v Variables) Err() error {
	errs := []error{v.lost}
	for _, name := range v.Files() {
		errs = append(errs, v.problems[name])
	}
	return errors.Join(errs...)
}

// Files returns the names of the variables that have a file, good or bad, in order.
func (v Variables) Files() []string {
	var out []string
	for name := range v.files {
		out = append(out, name)
	}
	for name := range v.problems {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Values returns the contents of all good files.
func (v Variables) Values() []string {
	var out []string
	for _, text := range v.files {
		out = append(out, text)
	}
	return out
}

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// IgnoreFile is the name of the list of paths that git ignores, in the repository's
// root.
const IgnoreFile = ".gitignore"

// IgnoreError reports that something else is in the place of IgnoreFile.
type IgnoreError struct {
	Dir  string // the folder that git was to ignore
	What string // such as "a symbolic link"
}

// Error says what is there instead, and what to do.
func (e *IgnoreError) Error() string { return IgnoreFile + " is " + e.What + "; " + e.Hint() }

// Hint says what a person can do.
func (e *IgnoreError) Hint() string {
	return fmt.Sprintf("make it a regular file, or add %s/ to .git/info/exclude", e.Dir)
}

// Ignore adds a folder of the repository's root to IgnoreFile, unless that or
// .git/info/exclude has it already. The person's lines stay as they are.
func (d *Disk) Ignore(dir string) error {
	name := filepath.Join(d.repository, IgnoreFile)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return &IgnoreError{dir, kind(info.Mode())}
	}
	lines, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if ignored, decided := ignores(lines, dir); decided && ignored {
		return nil
	} else if !decided {
		// A worktree's .git is a file; then there is no such list here.
		exclude, err := os.ReadFile(filepath.Join(d.repository, ".git", "info", "exclude"))
		if ignored, _ := ignores(exclude, dir); err == nil && ignored {
			return nil
		}
	}
	return appendLine(name, lines, dir+"/")
}

// ignores reports whether the lines of an ignore file mention a folder, and whether
// the last of these lines ignores it.
func ignores(lines []byte, dir string) (ignored, decided bool) {
	for line := range strings.Lines(string(lines)) {
		pattern, negated := strings.CutPrefix(strings.TrimRight(line, " \t\r\n"), "!")
		pattern = strings.TrimPrefix(pattern, "/")
		pattern = strings.TrimPrefix(pattern, "**/")
		pattern = strings.TrimSuffix(pattern, "/**")
		pattern = strings.TrimSuffix(pattern, "/*")
		pattern = strings.TrimSuffix(pattern, "/")
		if match, err := path.Match(pattern, dir); err == nil && match {
			ignored, decided = !negated, true
		}
	}
	return ignored, decided
}

// appendLine adds a line with one write, so that a crash leaves all or nothing
// of it, and so that the file keeps its mode and its line ends.
func appendLine(name string, before []byte, line string) error {
	end := "\n"
	if bytes.Contains(before, []byte("\r\n")) {
		end = "\r\n"
	}
	line += end
	if len(before) > 0 && before[len(before)-1] != '\n' {
		line = end + line
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

package forgedir

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

const ignoreFile = ".gitignore"

// errIgnore says that there is something else than a list of what git ignores.
type errIgnore struct{ dir, what string }

func (e *errIgnore) Error() string { return ignoreFile + " is " + e.what + "; " + e.hint() }

func (e *errIgnore) hint() string {
	return fmt.Sprintf("make it a regular file, or add %s/ to .git/info/exclude", e.dir)
}

// ignoreFolder adds a folder to the repository's .gitignore, unless that or
// .git/info/exclude has it already. The person's lines stay as they are.
func ignoreFolder(root, dir string) error {
	name := filepath.Join(root, ignoreFile)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return &errIgnore{dir, kind(info.Mode())}
	}
	lines, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if ignored, decided := ignores(lines, dir); decided && ignored {
		return nil
	} else if !decided {
		// A worktree's .git is a file; then there is no such list here.
		exclude, err := os.ReadFile(filepath.Join(root, ".git", "info", "exclude"))
		if ignored, _ := ignores(exclude, dir); err == nil && ignored {
			return nil
		}
	}
	return appendLine(name, lines, dir+"/")
}

// ignores reports what the lines of an ignore file say about a folder, the
// last one that says something counting.
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

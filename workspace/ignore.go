package workspace

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

// ignoreFolder adds the folder to the repository's .gitignore, unless that or
// .git/info/exclude has it already. The person's lines stay as they are.
func ignoreFolder(root string) error {
	name := filepath.Join(root, ".gitignore")
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf(".gitignore is %s; make it a regular file, or add %s/ to .git/info/exclude", kind(info.Mode()), Dir)
	}
	lines, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if ignored, decided := ignores(lines); decided && ignored {
		return nil
	} else if !decided {
		// A worktree's .git is a file; then there is no such list here.
		exclude, err := os.ReadFile(filepath.Join(root, ".git", "info", "exclude"))
		if ignored, _ := ignores(exclude); err == nil && ignored {
			return nil
		}
	}
	return appendLine(name, lines, Dir+"/")
}

// ignores reports what the lines of an ignore file say about the folder, the
// last one that says something counting.
func ignores(lines []byte) (ignored, decided bool) {
	for line := range strings.Lines(string(lines)) {
		pattern, negated := strings.CutPrefix(strings.TrimRight(line, " \t\r\n"), "!")
		pattern = strings.TrimPrefix(pattern, "/")
		pattern = strings.TrimPrefix(pattern, "**/")
		pattern = strings.TrimSuffix(pattern, "/**")
		pattern = strings.TrimSuffix(pattern, "/*")
		pattern = strings.TrimSuffix(pattern, "/")
		if match, err := path.Match(pattern, Dir); err == nil && match {
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

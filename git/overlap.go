package git

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// overlap explains why git would not move the files: which uncommitted work of the person is in the way.
func (s *Store) overlap(ctx context.Context, m move, k command, cause error) error {
	changed, err := names(run(ctx, s.plumb(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", string(m.Old), string(m.New)))
	if err != nil {
		return err
	}
	added, err := names(run(ctx, s.plumb(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A",
		string(m.Old), string(m.New)))
	if err != nil {
		return err
	}
	staged, err := names(run(ctx, k, "diff-index", "--cached", "-z", "--name-only", "--no-renames", string(m.Old)))
	if err != nil {
		return err
	}
	edited, err := names(run(ctx, k, "ls-files", "-z", "-m", "-d"))
	if err != nil {
		return err
	}
	files := touching(append(staged, edited...), changed)
	for _, p := range added {
		files = append(files, m.untracked(p)...)
	}
	if len(files) == 0 {
		if quoted := quotedPath.FindStringSubmatch(stderrOf(cause)); quoted != nil {
			files = quoted[1:]
		}
	}
	if len(files) == 0 {
		return cause
	}
	slices.Sort(files)
	return &OverlapError{WorkTree: m.WorkTree, Files: slices.Compact(files)}
}

var quotedPath = regexp.MustCompile(`'([^'\n]+)'`)

// touching returns the paths of mine that are equal to, above or below one of theirs.
func touching(mine, theirs []string) []string {
	at := make(map[string]bool) // theirs and every directory of theirs
	exact := make(map[string]bool)
	for _, p := range theirs {
		exact[p] = true
		for ; p != "." && !at[p]; p = path.Dir(p) {
			at[p] = true
		}
	}
	var found []string
	for _, p := range mine {
		below := false
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			below = below || exact[d]
		}
		if at[p] || below {
			found = append(found, p)
		}
	}
	return found
}

// untracked finds what is on the disk where a new file wants to be: a file there or at one of its directories, or
// a directory with something in it.
func (m move) untracked(p string) []string {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if info, err := os.Lstat(filepath.Join(m.WorkTree, d)); err == nil && !info.IsDir() {
			return []string{d}
		}
	}
	if exists(filepath.Join(m.WorkTree, p)) {
		return []string{p}
	}
	return nil
}

// names splits the NUL-separated output of a command.
func names(out []byte, err error) ([]string, error) {
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
}

package git

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// overlap tells which uncommitted work of the person is in the way of a move. git decides about what is tracked; an
// untracked file is always in the way, also an ignored one, which git itself would overwrite.
func (s *Store) overlap(ctx context.Context, m move, k command) error {
	files, err := s.untracked(ctx, m, k)
	if err != nil {
		return err
	}
	_, cause := run(ctx, k, "read-tree", "-m", "-u", "-n", string(m.Old), string(m.New))
	if cause != nil {
		edited, err := s.edited(ctx, m, k)
		if err != nil {
			return err
		}
		files = append(files, edited...)
		if quoted := quotedPath.FindStringSubmatch(stderrOf(cause)); quoted != nil && len(files) == 0 {
			files = quoted[1:]
		}
	}
	if len(files) == 0 {
		return cause
	}
	slices.Sort(files)
	return &OverlapError{WorkTree: m.WorkTree, Files: slices.Compact(files)}
}

// edited lists the tracked files that the person changed, staged or not, and that the move touches.
func (s *Store) edited(ctx context.Context, m move, k command) ([]string, error) {
	changed, err := names(run(ctx, s.plumb(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", string(m.Old), string(m.New)))
	if err != nil {
		return nil, err
	}
	staged, err := names(run(ctx, k, "diff-index", "--cached", "-z", "--name-only", "--no-renames", string(m.Old)))
	if err != nil {
		return nil, err
	}
	edited, err := names(run(ctx, k, "ls-files", "-z", "-m", "-d"))
	return touching(append(staged, edited...), changed), err
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

// untracked lists what is on the disk where the move adds files, and is in neither the index nor the way of git.
func (s *Store) untracked(ctx context.Context, m move, k command) ([]string, error) {
	added, err := names(run(ctx, s.plumb(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A",
		string(m.Old), string(m.New)))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range added {
		found = append(found, m.onDisk(p)...)
	}
	if len(found) == 0 {
		return nil, nil
	}
	all, err := names(run(ctx, k, "ls-files", "-z"))
	if err != nil {
		return nil, err
	}
	tracked := make(map[string]bool, len(all))
	for _, p := range all {
		tracked[p] = true
	}
	return slices.DeleteFunc(found, func(p string) bool { return tracked[p] }), nil
}

// onDisk finds the files at a path, at one of its directories, or below it.
func (m move) onDisk(p string) []string {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if info, err := os.Lstat(filepath.Join(m.WorkTree, d)); err == nil && !info.IsDir() {
			return []string{d}
		}
	}
	var found []string
	_ = filepath.WalkDir(filepath.Join(m.WorkTree, p), func(full string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if rel, err := filepath.Rel(m.WorkTree, full); err == nil {
				found = append(found, rel)
			}
		}
		return nil
	})
	return found
}

// names splits the NUL-separated output of a command.
func names(out []byte, err error) ([]string, error) {
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
}

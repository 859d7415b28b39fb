package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// written returns the changes whose file on the disk has content of the move: all of
// it, the beginning of it, or nothing where a file was to be deleted or replaced. What
// else is there is the person's.
func (repo *Repository) written(ctx context.Context, m move, k git.Command, changes []git.RawChange) ([]git.RawChange, error) {
	var ours []git.RawChange
	for _, c := range changes {
		full := filepath.Join(m.WorkTree, c.Path)
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
			if strings.Trim(c.OldMode, "0") != "" && (err != nil || emptyTree(full)) {
				ours = append(ours, c)
			}
			continue
		}
		if err != nil {
			continue // below a file: not ours to touch
		}
		same, err := repo.sameContent(ctx, k, c, full, info)
		if err != nil {
			return nil, err
		}
		if same {
			ours = append(ours, c)
		}
	}
	return ours, nil
}

// sameContent reports whether a file has the content that a change gives it,
// whole or in part, as git would write it: then it was written by us.
func (repo *Repository) sameContent(ctx context.Context, k git.Command, c git.RawChange, full string, info fs.FileInfo) (bool, error) {
	if strings.Trim(c.NewMode, "0") == "" {
		return false, nil
	}
	blob, err := git.Run(ctx, repo.ObjectCommand(), "cat-file", "blob", c.NewOID)
	if err != nil {
		return false, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(full)
		return err == nil && target == string(blob), nil
	}
	content, err := os.ReadFile(full)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // unreadable: not ours to touch
	}
	if bytes.HasPrefix(blob, content) {
		return true, nil
	}
	// With the person's filters and line endings the file is not the blob.
	k.Stdin = bytes.NewReader(content)
	out, err := git.Run(ctx, k, "hash-object", "--stdin", "--path="+c.Path)
	return err == nil && string(bytes.TrimSpace(out)) == c.NewOID, err
}

// emptyTree reports whether a folder holds nothing but folders.
func emptyTree(dir string) bool {
	empty := true
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		empty = empty && err == nil && d.IsDir()
		return nil
	})
	return empty
}

// removeFile removes a file that the move had added, and the directories that it leaves empty.
func (m move) removeFile(p string) {
	if os.Remove(filepath.Join(m.WorkTree, p)) != nil {
		return
	}
	for d := filepath.Dir(p); d != "."; d = filepath.Dir(d) {
		if os.Remove(filepath.Join(m.WorkTree, d)) != nil {
			return
		}
	}
}

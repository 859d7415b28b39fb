package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// Repair undoes a merge that a crash cut off while a person's files were following,
// unless the branch had moved already. Nothing is lost: a file is put back only when it
// has the content that we wrote, whole or in part. OpenLocal and Merge do it by
// themselves.
func (repo *Repository) Repair(ctx context.Context) error {
	torn := disk.Exists(repo.moveFile())
	for _, w := range repo.workTrees() {
		torn = torn || isMarked(filepath.Join(w.gitDir, indexLock))
	}
	if !torn {
		return nil
	}
	return repo.Locked(ctx, func(hold []*os.File) error { return repo.repair(ctx, hold) })
}

// repair runs under the lock, which every git of ours inherits: so none of them
// is alive any more, and every lock file that is provably ours is stale. If the
// branch is at the new commit the move was done; if a person has gone on since,
// their work stays as it is.
func (repo *Repository) repair(ctx context.Context, hold []*os.File) error {
	for _, w := range repo.workTrees() {
		if path := filepath.Join(w.gitDir, indexLock); isMarked(path) {
			_ = os.Remove(path)
			_ = os.Remove(filepath.Join(w.gitDir, ownIndex))
		}
	}
	b, err := os.ReadFile(repo.moveFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var m move
	if err != nil || json.Unmarshal(b, &m) != nil || !disk.IsDir(m.GitDir) {
		return errors.Join(err, os.Remove(repo.moveFile()))
	}
	m.removeLocks(repo.common)
	w := workTreeInfo{path: m.WorkTree, gitDir: m.GitDir, head: readHEAD(m.GitDir)}
	head, err := repo.Head(ctx, m.Branch)
	if err != nil && !errors.Is(err, git.ErrNoBranch) {
		return err
	}
	if !m.Files || head != m.Old || !disk.IsDir(m.WorkTree) || !w.on(m.Branch) {
		return os.Remove(repo.moveFile()) // nothing had begun, or it was done, or a person has gone on since
	}
	unlock, err := lockIndex(m.GitDir)
	if err != nil {
		return err
	}
	defer unlock()
	return repo.rollBack(ctx, m, hold)
}

// isMarked reports whether a lock file has our mark.
func isMarked(lock string) bool {
	b, err := os.ReadFile(lock)
	return err == nil && string(b) == lockMark
}

// removeLocks removes the locks of a git of ours that was killed: the branch's lock has
// the commit that only we were about to write, or nothing yet; HEAD.lock was made with
// it.
func (m move) removeLocks(common string) {
	_ = os.Remove(filepath.Join(m.GitDir, ownIndex+".lock"))
	branch, head := filepath.Join(common, m.Branch.Ref()+".lock"), filepath.Join(m.GitDir, "HEAD.lock")
	b, err := os.ReadFile(branch)
	if err == nil && strings.TrimSpace(string(b)) == string(m.New) || neverFilled(branch) {
		_ = os.Remove(branch)
	}
	if neverFilled(head) {
		_ = os.Remove(head)
	}
}

// neverFilled reports whether a lock file is empty and too old for a git that
// is just filling it.
func neverFilled(lock string) bool {
	info, err := os.Lstat(lock)
	return err == nil && info.Size() == 0 && time.Since(info.ModTime()) > staleAfter
}

// staleAfter is longer than any git needs between making a lock file and filling it.
const staleAfter = 2 * time.Second

// rollBack puts index and files back to the old commit where they are ours, and forgets the move.
func (repo *Repository) rollBack(ctx context.Context, m move, hold []*os.File) error {
	changes, err := repo.RawChanges(ctx, m.Old, m.New)
	if err != nil {
		return err
	}
	if err := takeIndex(m.GitDir); err != nil {
		return err
	}
	own := filepath.Join(m.GitDir, ownIndex)
	defer func() { _ = os.Remove(own) }()
	k := m.person(hold)
	ours, err := repo.written(ctx, m, k, changes)
	if err != nil {
		return err
	}
	if err := m.resetEntries(ctx, k, changes); err != nil {
		return err
	}
	var back []string
	for _, c := range ours {
		if strings.Trim(c.OldMode, "0") != "" {
			back = append(back, c.Path)
			continue
		}
		m.removeFile(c.Path)
	}
	k.Stdin = strings.NewReader(strings.Join(back, "\x00"))
	if _, err := git.Run(ctx, k, "checkout-index", "-q", "-f", "-u", "-z", "--stdin"); err != nil {
		return err
	}
	if err := os.Rename(own, filepath.Join(m.GitDir, "index")); err != nil {
		return err
	}
	return os.Remove(repo.moveFile())
}

// resetEntries sets the index entries that equal the new commit back to the old one.
// Other entries are the person's.
func (m move) resetEntries(ctx context.Context, k git.Command, changes []git.RawChange) error {
	out, err := git.SplitNUL(git.Run(ctx, k, "ls-files", "-z", "--stage"))
	if err != nil {
		return err
	}
	now := make(map[string]string)
	for _, rec := range out {
		meta, p, _ := strings.Cut(rec, "\t")
		now[p] = meta
	}
	var in bytes.Buffer
	for _, c := range changes {
		want := c.NewMode + " " + c.NewOID + " 0"
		if strings.Trim(c.NewMode, "0") == "" {
			want = ""
		}
		if now[c.Path] == want {
			fmt.Fprintf(&in, "%s %s\t%s\x00", c.OldMode, c.OldOID, c.Path)
		}
	}
	k.Stdin = &in
	_, err = git.Run(ctx, k, "update-index", "-z", "--index-info")
	return err
}

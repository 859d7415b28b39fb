package objects

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// CheckCommits looks at everything that each of the commits adds, also what a
// later one removes again: all of it would become history of the base branch.
// It refuses paths that belong to git or to the service, submodules, links out
// of the tree, and files above limits.Blob. Errors: *WorkError (Unsafe,
// Oversized), with the first such path. Commits that have passed with the same limits
// are not looked at again.
func (db *Database) CheckCommits(ctx context.Context, commits []git.OID, limits Limits) error {
	commits = slices.DeleteFunc(slices.Clone(commits), func(o git.OID) bool {
		passed, known := db.checked.get(o, o)
		return known && passed == limits
	})
	if len(commits) == 0 {
		return nil
	}
	if err := db.checkCommits(ctx, commits, limits); err != nil {
		return err
	}
	for _, o := range commits {
		db.checked.put(o, o, limits)
	}
	return nil
}

// checkCommits is CheckCommits, and knows of nothing that has passed.
func (db *Database) checkCommits(ctx context.Context, commits []git.OID, limits Limits) error {
	c := db.ObjectCommand()
	var in bytes.Buffer
	for _, o := range commits {
		fmt.Fprintln(&in, o)
	}
	c.Stdin = &in
	out, err := git.Run(ctx, c, "diff-tree", "--stdin", "-r", "-m", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id")
	if err != nil {
		return err
	}
	var blobs, links []entry
	f := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(f); i += 2 {
		meta := strings.Fields(f[i])
		if len(meta) != 5 {
			return fmt.Errorf("diff-tree: cannot read %q", git.Clip(f[i]))
		}
		e := entry{mode: meta[1], oid: meta[3], path: f[i+1]}
		if err := e.check(); err != nil {
			return err
		}
		switch {
		case e.mode == "120000":
			links = append(links, e)
		case strings.HasPrefix(e.mode, "100"):
			blobs = append(blobs, e)
		}
	}
	r := db.NewReader(ctx)
	defer r.Close()
	if err := checkSizes(r, append(blobs, links...), limits.Blob); err != nil {
		return err
	}
	return checkLinks(r, links, limits.Blob)
}

// entry is one added or changed path of a commit, with the mode as git prints
// it: 100644, 100755, 120000 for a link, 160000 for a submodule, 000000 for a
// deleted path.
type entry struct{ mode, oid, path string }

// check refuses an entry by its path and mode alone.
func (e entry) check() error {
	unsafe := func(detail string) error { return &git.WorkError{Fault: git.Unsafe, Path: e.path, Detail: detail} }
	switch {
	case IsForge(e.path):
		return unsafe("belongs to the service and may not be committed")
	case e.mode == "160000":
		return unsafe("is a submodule or a repository of its own")
	}
	if e.mode == "000000" { // deleted
		return nil
	}
	for part := range strings.SplitSeq(e.path, "/") {
		if looksLikeGit(part) {
			return unsafe("looks like a .git directory")
		}
	}
	return nil
}

// looksLikeGit reports whether some file system takes the name for .git: those
// that ignore case, spaces or dots at the end, invisible characters, or what
// follows a colon. git's own checks know the same and more; this one names the
// path.
func looksLikeGit(name string) bool {
	n := strings.ToLower(strings.TrimRight(name, " ."))
	n, _, _ = strings.Cut(n, ":")
	n = strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1 // ignored by HFS+
		}
		return r
	}, n)
	return n == ".git" || n == "git~1"
}

// checkSizes refuses blobs of more bytes than one may have.
func checkSizes(r *Reader, blobs []entry, most int64) error {
	for _, b := range blobs {
		size, err := r.size(git.OID(b.oid))
		if err != nil {
			return fmt.Errorf("%q: %w", b.path, err)
		}
		if size > most {
			return &git.WorkError{Fault: git.Oversized, Path: b.path, Detail: fmt.Sprintf("has %d bytes, more than %d", size, most)}
		}
	}
	return nil
}

// checkLinks reads the symbolic links and refuses those that point out of the
// tree. checkSizes comes first, so none is too large to read.
func checkLinks(r *Reader, links []entry, most int64) error {
	for _, l := range links {
		out, err := r.read(git.OID(l.oid), "blob", int(most))
		if err != nil {
			return err
		}
		target := string(out)
		if leavesTree(l.path, target) {
			return &git.WorkError{Fault: git.Unsafe, Path: l.path, Detail: fmt.Sprintf("is a symbolic link out of the tree, to %q", git.Clip(target))}
		}
	}
	return nil
}

// leavesTree judges a link's target by its text: only leading .. may climb, and no
// further than the tree. A later one could climb out of what another link leads to.
func leavesTree(link, target string) bool {
	if target == "" || path.IsAbs(target) {
		return true
	}
	depth, climbing := strings.Count(link, "/"), true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case looksLikeGit(part):
			return true
		case part == "..":
			if depth--; depth < 0 || !climbing {
				return true
			}
		case part != "." && part != "":
			climbing = false
		}
	}
	return false
}

const (
	// ForgeDir is the directory of a working tree in which the service and the agent
	// exchange files. It is never committed.
	ForgeDir = ".forge"
	// ExcludeForge is the line of info/exclude that has git ignore ForgeDir.
	ExcludeForge = "/" + ForgeDir + "/\n"
)

// IsForge reports whether a path is in the directory of the service, or is that
// directory, in any case: on some file systems .Forge is the same.
func IsForge(p string) bool {
	top, _, _ := strings.Cut(p, "/")
	return strings.EqualFold(top, ForgeDir)
}

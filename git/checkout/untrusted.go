package checkout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// The limits on files of an agent's .git that are read into memory, in bytes.
const (
	maxRefFile    = 4 << 10
	maxPackedRefs = 4 << 20
)

// agentGit reads a .git that an agent may have written, with our own code only:
// it is never given to git. Every step is below the checkout's directory,
// follows no symbolic link, opens regular files only, and has a size limit.
// Faults are *WorkErrors.
type agentGit struct {
	// root is the open directory of the checkout; no path leads out of it.
	root *os.Root
}

// openAgentGit opens the .git of a checkout, if it still looks like one. The
// caller closes it.
func openAgentGit(dir string) (*agentGit, error) {
	if !disk.IsDir(dir) {
		return nil, &git.WorkError{Fault: git.Damaged, Detail: "the checkout was deleted or replaced"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &git.WorkError{Fault: git.Damaged, Detail: "the checkout cannot be opened: " + err.Error()}
	}
	a := &agentGit{root: root}
	for _, d := range []string{".git", ".git/objects", ".git/refs"} {
		if info, err := root.Lstat(d); err != nil || !info.IsDir() {
			_ = root.Close()
			return nil, &git.WorkError{Fault: git.Damaged, Path: d, Detail: "was deleted or replaced"}
		}
	}
	return a, nil
}

func (a *agentGit) close() { _ = a.root.Close() }

// plain opens a regular file of at most limit bytes, none of whose parents is a
// symbolic link, and returns its size. A pipe in place of the file does not
// block it.
func (a *agentGit) plain(name string, limit int64) (*os.File, int64, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := a.root.Lstat(dir); err != nil {
			return nil, 0, err
		} else if !info.IsDir() {
			return nil, 0, &git.WorkError{Fault: git.Damaged, Path: dir, Detail: "is not a directory"}
		}
	}
	info, err := a.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &git.WorkError{Fault: git.Damaged, Path: name, Detail: "is not a regular file"}
	}
	if info.Size() > limit {
		return nil, 0, &git.WorkError{Fault: git.Oversized, Path: name, Detail: fmt.Sprintf("has %d bytes, more than %d", info.Size(), limit)}
	}
	f, err := a.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	return f, info.Size(), err
}

// read returns the content of a file that plain accepts.
func (a *agentGit) read(name string, limit int64) (string, error) {
	f, _, err := a.plain(name, limit)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return string(b), err
}

// branch returns the commit of refs/heads/<b>, loose or packed. Anything that
// is not the name of an object, also another ref, is refused.
func (a *agentGit) branch(b git.Branch) (git.OID, error) {
	content, err := a.read(".git/"+b.Ref(), maxRefFile)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = a.packed(b)
	}
	if err != nil {
		return "", damaged(".git/"+b.Ref(), err)
	}
	o, err := git.ParseOID(strings.TrimSpace(content))
	if err != nil {
		return "", damaged(".git/"+b.Ref(), err)
	}
	return o, nil
}

// packed returns the line of a branch in packed-refs, up to its name;
// fs.ErrNotExist if there is none.
func (a *agentGit) packed(b git.Branch) (string, error) {
	content, err := a.read(".git/packed-refs", maxPackedRefs)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(content) {
		if oid, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && ref == b.Ref() {
			return oid, nil
		}
	}
	return "", fs.ErrNotExist
}

// head returns the commit that HEAD is on, and the branch if it is on one. The
// branch may be any that the agent made.
func (a *agentGit) head() (git.OID, git.Branch, error) {
	content, err := a.read(".git/HEAD", maxRefFile)
	if err != nil {
		return "", "", damaged(".git/HEAD", err)
	}
	content = strings.TrimSpace(content)
	name, ok := strings.CutPrefix(content, "ref: refs/heads/")
	if !ok {
		o, err := git.ParseOID(content)
		if err != nil {
			return "", "", damaged(".git/HEAD", err)
		}
		return o, "", nil
	}
	b, err := git.ParseBranch(name)
	if err != nil {
		return "", "", damaged(".git/HEAD", err)
	}
	o, err := a.branch(b)
	return o, b, err
}

// objectFile matches the paths below .git/objects that hold objects.
var objectFile = pattern.New(`^([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.(pack|idx))$`)

// copyObjects copies the files that git would take for objects, and nothing
// else: no alternates, no commit graph, no bitmap, no promisor mark, nothing
// that a link points to. It stops at the limits on all of them together. The
// contents are not checked yet: to is a quarantine.
func (a *agentGit) copyObjects(to string, limits objects.Limits) error {
	const top = ".git/objects"
	bytes, files := limits.Bytes, limits.Objects
	dirs, err := fs.ReadDir(a.root.FS(), top)
	if err != nil {
		return damaged(top, err)
	}
	for _, d := range dirs {
		if !d.IsDir() || len(d.Name()) != 2 && d.Name() != "pack" {
			continue
		}
		entries, err := fs.ReadDir(a.root.FS(), path.Join(top, d.Name()))
		if err != nil {
			return damaged(path.Join(top, d.Name()), err)
		}
		for _, e := range entries {
			name := path.Join(d.Name(), e.Name())
			if !objectFile.MatchString(name) || !e.Type().IsRegular() {
				continue
			}
			n, err := a.copyObject(top, name, to, bytes)
			if err != nil {
				return err
			}
			bytes -= n
			if files--; files < 0 {
				return &git.WorkError{Fault: git.Oversized, Detail: fmt.Sprintf("more than %d new objects", limits.Objects)}
			}
		}
	}
	return nil
}

// copyObject copies one file of at most room bytes, and returns its size.
func (a *agentGit) copyObject(top, name, to string, room int64) (int64, error) {
	src, size, err := a.plain(path.Join(top, name), room)
	if err != nil {
		return 0, damaged(path.Join(top, name), err)
	}
	defer src.Close()
	dst := to + "/" + name
	if err := os.MkdirAll(path.Dir(dst), 0o700); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(out, io.LimitReader(src, size))
	return size, errors.Join(err, out.Close())
}

// damaged wraps err as a WorkError, unless it is one.
func damaged(p string, err error) error {
	if w, ok := errors.AsType[*git.WorkError](err); ok {
		return w
	}
	return &git.WorkError{Fault: git.Damaged, Path: p, Detail: "cannot be used: " + err.Error()}
}

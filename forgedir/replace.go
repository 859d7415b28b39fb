package forgedir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// swappedOut is a file that was replaced a moment ago.
type swappedOut struct {
	name string // in replacedDir
	rel  string
	at   time.Time
}

const (
	fresh  = ".new"   // still being written: nobody's, if found after a crash
	staged = ".swap"  // ready, or what the swap brought out
	aside  = ".aside" // after staged: what a swap in two steps moved away
)

// stage writes a file's next version beside its place.
func (w *Workspace) stage(rel string, data []byte) error {
	name := path.Join(stagingDir, flat(rel))
	if err := writeFile(w.root, name+fresh, data, w.flush); err != nil {
		return err
	}
	w.reached("staged fresh")
	err := w.root.Rename(name+fresh, name+staged)
	w.reached("staged")
	return err
}

// install puts a staged version in place of what has this digest; zero: of
// nothing. It reports false if something else is there: a person was quicker,
// and the file is as the person left it.
func (w *Workspace) install(rel string, expect digest) (bool, error) {
	out := path.Join(stagingDir, flat(rel)+staged)
	if now, err := w.digestAt(rel); err != nil || now != expect {
		return false, w.root.Remove(out)
	}
	w.reached("checked")
	if expect == (digest{}) {
		err := w.moveNew(out, rel)
		if errors.Is(err, fs.ErrExist) {
			return false, w.root.Remove(out)
		}
		w.reached("installed")
		return err == nil, err
	}
	if err := w.swap(out, rel); errors.Is(err, fs.ErrNotExist) { // deleted just now
		return false, w.root.Remove(out)
	} else if err != nil {
		return false, err
	}
	w.reached("swapped")
	return w.dismiss(out, rel, expect)
}

// dismiss looks at what the swap brought out: the version that was expected is
// set aside for a while, anything else is a person's and goes back.
func (w *Workspace) dismiss(out, rel string, expect digest) (bool, error) {
	if now, err := w.digestAt(out); err != nil || now != expect {
		return false, w.giveBack(out, rel)
	}
	if err := w.tidyPath(rel); err != nil {
		return false, err
	}
	at := time.Now()
	old := swappedOut{name: flat(rel) + "%" + at.UTC().Format("20060102T150405.000000000"), rel: rel, at: at}
	if err := w.root.Rename(out, path.Join(replacedDir, old.name)); err != nil {
		return false, err
	}
	w.replaced = append(w.replaced, old)
	w.reached("dismissed")
	return true, nil
}

// giveBack puts a person's version, found at out, back in its place if that
// still holds a version of ours. Otherwise the person saved twice: both are
// kept, the last one in place.
func (w *Workspace) giveBack(out, rel string) error {
	data, _, err := w.read(rel, maxNotesBytes)
	if err == nil && (len(data) == 0 || w.index.ours(rel, digestOf(data))) {
		if err := w.swap(out, rel); err != nil {
			return err
		}
		return w.discard(out, rel)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return w.moveNew(out, rel)
	}
	return w.discard(out, rel)
}

// discard removes a file that has no place any more, and keeps it first if it
// is not ours.
func (w *Workspace) discard(name, rel string) error {
	data, _, err := w.read(name, maxNotesBytes)
	var notFile *errKind
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &notFile) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(data) > 0 && !w.index.ours(rel, digestOf(data)) {
		if _, err := w.keep(rel, data); err != nil {
			return err
		}
	}
	return w.root.Remove(name)
}

// keep saves a person's version of a file under .forge/kept and returns its path.
func (w *Workspace) keep(rel string, data []byte) (string, error) {
	ext := path.Ext(rel)
	kept := path.Join(keptDir, rel[:len(rel)-len(ext)]+"."+digestOf(data).short()+ext)
	if err := w.root.MkdirAll(path.Dir(kept), 0o755); err != nil {
		return "", err
	}
	written := path.Join(stagingDir, flat(kept)+fresh)
	if err := writeFile(w.root, written, data, w.flush); err != nil {
		return "", err
	}
	w.reached("kept fresh")
	if err := w.root.Rename(written, kept); err != nil {
		return "", err
	}
	w.log.Info("kept a person's version of a file", "file", shown(rel), "kept", shown(kept))
	return kept, w.syncDirs(path.Dir(kept))
}

// swap exchanges two files of the folder. Where the file system cannot, the
// second one is looked at and moved away in two steps.
func (w *Workspace) swap(a, b string) error {
	err := w.between(a, b, swap)
	if !unsupported(err) {
		return err
	}
	away := a + aside
	if err := w.rename(b, away); err != nil {
		return err
	}
	w.reached("aside")
	return errors.Join(w.rename(a, b), w.rename(away, a))
}

// moveNew renames a file of the folder unless the new name is taken: then it
// returns fs.ErrExist.
func (w *Workspace) moveNew(from, to string) error {
	err := w.between(from, to, moveNew)
	if !unsupported(err) {
		return err
	}
	if _, err := w.lstat(to); err == nil {
		return fs.ErrExist
	}
	return w.rename(from, to)
}

func (w *Workspace) between(a, b string, do func(int, string, int, string) error) error {
	if w.noSwap {
		return errors.ErrUnsupported
	}
	return w.across(a, b, do)
}

// rename moves a file, also from one of the folders to another.
func (w *Workspace) rename(from, to string) error { return w.across(from, to, unix.Renameat) }

func (w *Workspace) across(a, b string, do func(int, string, int, string) error) error {
	dirA, err := w.openDir(path.Dir(a))
	if err != nil {
		return err
	}
	defer func() { _ = dirA.Close() }()
	dirB, err := w.openDir(path.Dir(b))
	if err != nil {
		return err
	}
	defer func() { _ = dirB.Close() }()
	if err := do(int(dirA.Fd()), path.Base(a), int(dirB.Fd()), path.Base(b)); err != nil {
		return &os.LinkError{Op: "rename", Old: a, New: b, Err: err}
	}
	return nil
}

// unsupported reports whether the file system does not know the flag.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}

// digestAt returns the digest of the file at a path, zero if there is none.
func (w *Workspace) digestAt(rel string) (digest, error) {
	data, _, err := w.read(rel, maxNotesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return digest{}, nil
	}
	return digestOf(data), err
}

func (w *Workspace) syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		d, err := w.openDir(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(w.flush(d), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

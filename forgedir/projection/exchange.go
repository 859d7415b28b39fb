package projection

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// exchange puts versions in place of others, and finds the right place for what was
// there: a version of ours goes, a person's stays, goes back or is kept.
type exchange struct {
	disk  *disk.Disk
	index *index
	log   *slog.Logger
	// replaced are the files that were swapped out a moment ago, oldest first.
	replaced []swappedOut
}

// swappedOut is a former version that an editor may still have open.
type swappedOut struct {
	name string    // in layout.Replaced
	rel  string    // the path of the file that it was
	at   time.Time // of the swap
}

// install puts a version in place of the one that has the digest expect; zero: of
// nothing. It reports false if something else is there: a person was quicker, and the
// file is as the person left it.
func (x *exchange) install(rel string, data []byte, expect disk.Digest) (bool, error) {
	out, err := x.disk.Stage(rel, data)
	if err != nil {
		return false, err
	}
	if now, err := x.disk.DigestAt(rel); err != nil || now != expect {
		return false, x.disk.Remove(out)
	}
	x.disk.Reached("checked")
	if expect == (disk.Digest{}) {
		err := x.disk.MoveNew(out, rel)
		if errors.Is(err, fs.ErrExist) {
			return false, x.disk.Remove(out)
		}
		x.disk.Reached("installed")
		return err == nil, err
	}
	if err := x.disk.Swap(out, rel); errors.Is(err, fs.ErrNotExist) { // deleted just now
		return false, x.disk.Remove(out)
	} else if err != nil {
		return false, err
	}
	x.disk.Reached("swapped")
	return x.dismiss(out, rel, expect)
}

// dismiss looks at the file that the swap brought out: the version that was expected
// is set aside for a while, anything else is a person's and goes back.
func (x *exchange) dismiss(out, rel string, expect disk.Digest) (bool, error) {
	if now, err := x.disk.DigestAt(out); err != nil || now != expect {
		return false, x.giveBack(out, rel)
	}
	if err := x.tidyPath(rel); err != nil {
		return false, err
	}
	at := time.Now()
	old := swappedOut{name: layout.Flat(rel) + "%" + at.UTC().Format("20060102T150405.000000000"), rel: rel, at: at}
	if err := x.disk.Rename(out, path.Join(layout.Replaced, old.name)); err != nil {
		return false, err
	}
	x.replaced = append(x.replaced, old)
	x.disk.Reached("dismissed")
	return true, nil
}

// giveBack puts a person's version, found at out, back in its place if a version of
// ours is there, or nothing. Otherwise the person saved twice: both are kept, the
// last one in place.
func (x *exchange) giveBack(out, rel string) error {
	data, _, err := x.disk.Read(rel, disk.MaxOther)
	if err == nil && x.worthless(rel, data) {
		if err := x.disk.Swap(out, rel); err != nil {
			return err
		}
		return x.discard(out, rel)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return x.disk.MoveNew(out, rel)
	}
	return x.discard(out, rel)
}

// discard removes a file that has no place any more, and keeps it first if it is a
// person's version of rel. What is no regular file stays.
func (x *exchange) discard(name, rel string) error {
	data, _, err := x.disk.Read(name, disk.MaxOther)
	var notFile *disk.KindError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &notFile) {
		return nil
	}
	if err != nil {
		return err
	}
	if !x.worthless(rel, data) {
		if _, err := x.keep(rel, data); err != nil {
			return err
		}
	}
	return x.disk.Remove(name)
}

// worthless reports whether a content of a file can go: it is empty or ours.
func (x *exchange) worthless(rel string, data []byte) bool {
	return len(data) == 0 || x.index.ours(rel, disk.DigestOf(data))
}

// keep saves a person's version of a file below layout.Kept, on the disk, and returns
// its path. The same version is kept once.
func (x *exchange) keep(rel string, data []byte) (string, error) {
	ext := path.Ext(rel)
	kept := path.Join(layout.Kept, rel[:len(rel)-len(ext)]+"."+disk.DigestOf(data).Short()+ext)
	if err := x.disk.MakeFolders(path.Dir(kept)); err != nil {
		return "", err
	}
	written := path.Join(layout.Staging, layout.Flat(kept)+disk.Fresh)
	if err := x.disk.Write(written, data); err != nil {
		return "", err
	}
	x.disk.Reached("kept fresh")
	if err := x.disk.Rename(written, kept); err != nil {
		return "", err
	}
	x.log.Info("kept a person's version of a file", "file", layout.Shown(rel), "kept", layout.Shown(kept))
	return kept, x.disk.Sync(path.Dir(kept))
}

// tidy removes the files that were swapped out long enough ago, and gives back those
// that an editor still wrote into.
func (x *exchange) tidy() error {
	now := time.Now()
	for len(x.replaced) > 0 && now.Sub(x.replaced[0].at) >= x.disk.Linger {
		out := x.replaced[0]
		x.replaced = x.replaced[1:]
		if err := x.putAway(path.Join(layout.Replaced, out.name), out.rel); err != nil {
			return err
		}
	}
	return nil
}

// tidyPath makes sure that no former version of a file is around, so that there never
// are two of them.
func (x *exchange) tidyPath(rel string) error {
	i := slices.IndexFunc(x.replaced, func(s swappedOut) bool { return s.rel == rel })
	if i < 0 {
		return nil
	}
	out := x.replaced[i]
	x.replaced = slices.Delete(x.replaced, i, i+1)
	return x.putAway(path.Join(layout.Replaced, out.name), rel)
}

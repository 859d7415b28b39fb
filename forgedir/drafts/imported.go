package drafts

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// Imported moves a draft whose intent was submitted into intent-drafts/imported, under
// a name that is still free. A draft that was saved again since it was read stays: the
// next Read takes it. After a crash in between, the draft is still there, and makes the
// same event again, which the runner ignores.
func (r *Reader) Imported(in *person.Input) error {
	from := in.Source.Rel
	if now, err := r.Disk.DigestAt(from); err != nil || now != in.Source.Content {
		return nil //nolint:nilerr // gone or written anew, and maybe unreadable: the next Read says so
	}
	stem := strings.TrimSuffix(path.Base(from), ".md")
	for n := 1; ; n++ {
		to := path.Join(layout.Imported, stem+".md")
		if n > 1 {
			to = path.Join(layout.Imported, fmt.Sprintf("%s.%d.md", stem, n))
		}
		err := r.Disk.MoveNew(from, to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return disk.IgnoreMissing(err)
		}
		r.Disk.Reached("imported")
		if err := r.checkMoved(in, to); err != nil {
			return err
		}
		return r.Disk.Sync(layout.Drafts, layout.Imported)
	}
}

// checkMoved takes back a draft that was saved again in the last moment, between the look
// and the rename. If there is a newer draft of its name by now, both stay.
func (r *Reader) checkMoved(in *person.Input, to string) error {
	if now, err := r.Disk.DigestAt(to); err != nil || now == in.Source.Content {
		return err
	}
	if err := r.Disk.MoveNew(to, in.Source.Rel); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

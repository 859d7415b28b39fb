package forgedir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// refusal is a person's version of a file whose events were refused.
type refusal struct {
	content  digest
	seq      uint64
	problems []Problem
}

// Decided tells what became of an input: one ruling for each of its events, in
// their order, once these are in the journal. The first refusal ends them: what
// comes after it must not be asked for. A draft whose event was not
// refused moves to intent-drafts/imported; an edit may be overwritten from now
// on. What was refused becomes problems, here and in every later scan, until
// the person changes the file. A file that changed since it was read is left
// for the next scan.
func (w *Workspace) Decided(in Input, rulings []forge.Ruling) ([]Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range rulings[:min(len(rulings), len(in.Events))] {
		if r.Decision == forge.Refused {
			return w.refuse(in, in.refused(i, r, in.fields[:i])), nil
		}
	}
	if len(rulings) != len(in.Events) {
		return nil, fmt.Errorf("%s: %d rulings on %d events", in.Path, len(rulings), len(in.Events))
	}
	if in.Draft() != nil {
		return nil, w.moveImported(in)
	}
	w.imported[in.rel] = in.content
	return nil, w.rewrite(in.Intent, in.rel)
}

// Refuse tells that one event of an input would be refused, so that none of them
// was asked for. What it returns stays a problem like what Decided returns.
func (w *Workspace) Refuse(in Input, event int, r forge.Ruling) []Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refuse(in, in.refused(event, r, nil))
}

func (w *Workspace) refuse(in Input, p Problem) []Problem {
	problems := []Problem{p}
	w.refusals[in.rel] = refusal{in.content, in.seq, problems}
	return problems
}

// moveImported moves a draft away, under a name that is still free.
func (w *Workspace) moveImported(in Input) error {
	if now, err := w.digestAt(in.rel); err != nil || now != in.content {
		return nil //nolint:nilerr // gone, or written anew, as what or whatever: the next scan says so
	}
	stem := strings.TrimSuffix(path.Base(in.rel), ".md")
	for n := 1; ; n++ {
		to := path.Join(importedDir, stem+".md")
		if n > 1 {
			to = path.Join(importedDir, fmt.Sprintf("%s.%d.md", stem, n))
		}
		err := w.moveNew(in.rel, to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return ignoreMissing(err)
		}
		w.reached("imported")
		if err := w.checkMoved(in, to); err != nil {
			return err
		}
		return w.syncDirs(draftsDir, importedDir)
	}
}

// checkMoved takes back a draft that was saved again in the last moment.
func (w *Workspace) checkMoved(in Input, to string) error {
	if now, err := w.digestAt(to); err != nil || now == in.content {
		return err
	}
	if err := w.moveNew(to, in.rel); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

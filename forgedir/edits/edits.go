package edits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// Current returns the present view of an intent; false if there is no such intent. The
// view need not be the newest: the runner decides on the events, and refuses an approval
// of a plan that has changed.
type Current func(forge.IntentID) (forge.View, bool)

// Reader reads the edits of one repository's files. It is not safe for concurrent use.
type Reader struct {
	// Project receives the events.
	Project forge.ProjectID
	// Actor is the person behind the edits; may be empty.
	Actor string

	Disk  *disk.Disk
	Files *projection.Files
	// Refusals has the versions that the runner refused. Whoever gets the rulings adds them.
	Refusals person.Refusals
}

// Read reads the files of intents that hold something else than the last version of
// ours, each as an input with the events that the person's changes amount to, or as
// problems. It has files written again that are empty, or hold an older version of ours.
// Whatever is wrong with one file, the others are read.
func (r *Reader) Read(ctx context.Context, current Current) ([]person.Input, []person.Problem, error) {
	names, err := r.Files.Intents()
	if err != nil {
		return nil, nil, err
	}
	var inputs []person.Input
	var problems []person.Problem
	for _, name := range names {
		if !isIntentFile(name) {
			continue
		}
		in, bad, err := r.read(ctx, path.Join(layout.Intents, name), current)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, bad...)
		if in != nil {
			inputs = append(inputs, *in)
		}
	}
	return inputs, problems, nil
}

// Decided lets the projection replace the version that an input was read from: its events
// are in the journal. A version that was saved since then is not replaced.
func (r *Reader) Decided(in *person.Input) error {
	r.Files.Release(in.Source.Rel, in.Source.Content)
	return r.Files.Rewrite(in.Intent, in.Source.Rel)
}

// isIntentFile leaves out the files that editors keep beside an intent's.
func isIntentFile(name string) bool {
	return path.Ext(name) == ".yaml" && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#")
}

// read reads one file; nil and no problems if it holds no edit. A person's version is
// read once it is saved completely; for one of ours there is nothing to wait for.
func (r *Reader) read(ctx context.Context, rel string, current Current) (*person.Input, []person.Problem, error) {
	if r.Files.Unchanged(rel) {
		return nil, nil, nil
	}
	data, info, err := r.Disk.Read(rel, disk.MaxIntent)
	if err == nil && !r.Files.Ours(rel, data, info) {
		data, info, err = r.Disk.ReadSettled(ctx, rel, disk.MaxIntent)
	}
	in := &person.Input{
		Path: layout.Shown(rel), Intent: layout.Owner(rel),
		Source: person.Source{Rel: rel, Content: disk.DigestOf(data)},
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, []person.Problem{person.Unreadable(in.Path, err)}, nil
	case len(data) == 0: // as good as gone
		return nil, nil, r.Files.Rewrite(in.Intent, rel)
	case r.Files.Ours(rel, data, info):
		r.Refusals.Forget(rel)
		if r.Files.Current(rel, in.Source.Content) {
			return nil, nil, nil
		}
		return nil, nil, r.Files.Rewrite(in.Intent, rel) // an older version: a crash, or a person's backup
	}
	r.Files.Recheck(rel)
	view, refusal := viewOf(in, current)
	if refusal != nil {
		return nil, refusal, nil
	}
	return r.compare(in, data, &view)
}

// viewOf returns the view of the intent that a file is named after, or the problem
// that there is none.
func viewOf(in *person.Input, current Current) (forge.View, []person.Problem) {
	if _, err := forge.ParseIntentID(string(in.Intent)); err != nil {
		hint := "the file's name is the intent's id; remove it, and write new intents into " + layout.Shown(layout.Drafts)
		return forge.View{}, []person.Problem{in.Problem("id", person.NoID(err), hint)}
	}
	view, ok := current(in.Intent)
	if !ok {
		return forge.View{}, []person.Problem{in.Problem("", fmt.Sprintf("there is no intent %s", in.Intent),
			fmt.Sprintf("remove it; to ask for a new intent, write %s/%s.md", layout.Shown(layout.Drafts), in.Intent))}
	}
	return view, nil
}

// compare makes events of a person's version of a file, or problems; neither if it asks
// for nothing that is not decided already. An event's id names the version and the view
// that it was compared to: asking twice is asking once, and after a decision on the
// intent the same version can ask again.
func (r *Reader) compare(in *person.Input, data []byte, view *forge.View) (*person.Input, []person.Problem, error) {
	in.Source.Seq = view.Seq
	if problems := r.Refusals.Of(in); problems != nil {
		return nil, problems, nil
	}
	if line := conflictMarker(data); line > 0 {
		return nil, []person.Problem{{
			Path: in.Path, Line: line, Reason: "contains merge conflict markers",
			Hint: "resolve the conflict and remove the markers",
		}}, nil
	}
	mine, pos, err := projection.DecodeIntent(data)
	if err != nil {
		return nil, person.Invalid(in.Path, "fix it, or remove the file to have it written again", err), nil
	}
	now, err := present(view)
	if err != nil {
		return nil, nil, err
	}
	if mine.Revision == 0 {
		return nil, []person.Problem{incomplete(in, data, now.Revision)}, nil
	}
	c := comparison{in: in, mine: mine, now: now, pos: pos, view: view}
	if c.base, c.based = r.Files.Base(in.Intent, mine.Revision); !c.based {
		c.base, c.stale = now, mine.Revision > 0 && mine.Revision < now.Revision
	}
	events := c.run()
	if len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	if len(events) == 0 { // decided already, or nothing but its form changed
		r.Files.Release(in.Source.Rel, in.Source.Content)
		return nil, nil, r.rewriteLater(in, mine, now, view)
	}
	for i := range events {
		e := &events[i]
		e.ID = fmt.Sprintf("file:%s:%d:%d", in.Source.Content, view.Seq, i)
		e.To, e.Actor = forge.Key{Project: r.Project, Intent: in.Intent}, r.Actor
	}
	in.Events = events
	return in, nil, nil
}

// incomplete refuses a file without its last line: it may be half of the file that the
// person wrote, because the disk was full or the editor died. Now is the present
// revision.
func incomplete(in *person.Input, data []byte, now int64) person.Problem {
	return person.Problem{
		Path: in.Path, Line: 1 + bytes.Count(bytes.TrimRight(data, "\r\n"), []byte("\n")), Field: "revision",
		Reason: "is missing: it is the file's last line, so the file may be cut off",
		Hint:   fmt.Sprintf("if it is complete, add the line revision: %d; or remove the file to have it written again", now),
	}
}

// rewriteLater has the intent written again if its files lack something, or if this one
// does not say what is true. Otherwise a person's comments, or another order of the
// fields, stay until the next decision.
func (r *Reader) rewriteLater(in *person.Input, mine, now document.Intent, view *forge.View) error {
	mine.Revision, now.Revision = 0, 0
	a, err := projection.EncodeIntent(mine)
	if err != nil {
		return err
	}
	b, err := projection.EncodeIntent(now)
	if err != nil {
		return err
	}
	if r.Files.Projected(in.Intent) == view.Seq && bytes.Equal(a, b) {
		return nil
	}
	return r.Files.Rewrite(in.Intent, in.Source.Rel)
}

// present returns the file as it would be written now, as a person would read it:
// differences that only the way through YAML makes are no edits.
func present(view *forge.View) (document.Intent, error) {
	doc := document.IntentOf(view)
	doc.Revision = int64(view.Seq)
	data, err := projection.EncodeIntent(doc)
	if err != nil {
		return doc, err
	}
	doc, _, err = projection.DecodeIntent(data)
	return doc, err
}

// conflictMarker returns the line of a merge conflict's mark, or 0. In a value of
// several lines such a mark would be indented.
func conflictMarker(data []byte) int {
	n := 0
	for l := range bytes.Lines(data) {
		n++
		for _, mark := range []string{"<<<<<<< ", ">>>>>>> ", "======="} {
			if bytes.HasPrefix(l, []byte(mark)) {
				return n
			}
		}
	}
	return 0
}

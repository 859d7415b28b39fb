package forgedir

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// Edits reads the files of intents that hold something else than what was
// written there last, each as an input with the events that the person's
// changes amount to, or as problems. A file with a problem makes no events at
// all. Current returns the present view of an intent, false if there is none;
// it must not use the workspace. Files that are gone are noticed, see Projected.
func (w *Workspace) Edits(ctx context.Context, current func(forge.IntentID) (forge.View, bool)) ([]Input, []Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.renew(); err != nil {
		return nil, nil, err
	}
	if err := w.tidy(); err != nil {
		return nil, nil, err
	}
	if err := w.notice(); err != nil {
		return nil, nil, err
	}
	entries, err := w.list(intentsDir)
	if err != nil {
		return nil, nil, err
	}
	var inputs []Input
	var problems []Problem
	for _, e := range entries {
		if !isIntentFile(e) {
			continue
		}
		in, bad, err := w.edit(ctx, path.Join(intentsDir, e.Name()), current)
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

// isIntentFile leaves out what editors keep beside a file.
func isIntentFile(e fs.DirEntry) bool {
	return path.Ext(e.Name()) == ".yaml" && !strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(e.Name(), "#")
}

func (w *Workspace) edit(ctx context.Context, rel string, current func(forge.IntentID) (forge.View, bool)) (*Input, []Problem, error) {
	if w.unchanged(rel) {
		return nil, nil, nil
	}
	data, info, err := w.read(rel, maxIntentBytes)
	if err == nil && !w.ours(rel, data, info) {
		data, info, err = w.readSettled(ctx, rel, maxIntentBytes)
	}
	in := &Input{Path: shown(rel), rel: rel, content: digestOf(data), Intent: ownerOf(rel)}
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case isMissing(err):
		return nil, nil, nil
	case err != nil:
		return nil, []Problem{unreadable(in.Path, err)}, nil
	case len(data) == 0: // as good as gone
		return nil, nil, w.rewrite(in.Intent, rel)
	case w.ours(rel, data, info):
		if w.imported[rel] == in.content || w.index.latest(rel, in.content) {
			return nil, nil, nil
		}
		return nil, nil, w.rewrite(in.Intent, rel) // an older version: a crash, or a person's backup
	}
	delete(w.settled, rel)
	view, refusal := w.viewOf(in, current)
	if refusal != nil {
		return nil, refusal, nil
	}
	return w.compare(in, data, &view)
}

func (w *Workspace) viewOf(in *Input, current func(forge.IntentID) (forge.View, bool)) (forge.View, []Problem) {
	if _, err := forge.ParseIntentID(string(in.Intent)); err != nil {
		hint := "the file's name is the intent's id; remove it, and write new intents into " + shown(draftsDir)
		return forge.View{}, []Problem{in.problem("id", reasonOf(err), hint)}
	}
	view, ok := current(in.Intent)
	if !ok {
		return forge.View{}, []Problem{in.problem("", fmt.Sprintf("there is no intent %s", in.Intent),
			fmt.Sprintf("remove it; to ask for a new intent, write %s/%s.md", shown(draftsDir), in.Intent))}
	}
	return view, nil
}

// unchanged reports whether a file is still the one that held what we wrote.
func (w *Workspace) unchanged(rel string) bool {
	seen, ok := w.seen[rel]
	if !ok {
		return false
	}
	info, err := w.lstat(rel)
	return err == nil && signatureOf(info) == seen
}

// racy is how close to its last change a file may be read without a further
// change going unnoticed, since clocks of file systems are coarse.
const racy = 2 * time.Second

// ours reports whether a file holds what we wrote, or an edit that was decided.
func (w *Workspace) ours(rel string, data []byte, info fs.FileInfo) bool {
	d := digestOf(data)
	if w.imported[rel] == d {
		return true
	}
	if !w.index.ours(rel, d) {
		delete(w.seen, rel)
		return false
	}
	if time.Since(info.ModTime()) > racy {
		w.seen[rel] = signatureOf(info)
	}
	return true
}

// rewrite has the files of an intent written again.
func (w *Workspace) rewrite(id forge.IntentID, rel string) error {
	delete(w.settled, rel)
	if w.index.seqs[id] == 0 {
		return nil
	}
	return w.index.add(false, indexLine{Intent: id})
}

func (w *Workspace) compare(in *Input, data []byte, view *forge.View) (*Input, []Problem, error) {
	if r, ok := w.refusals[in.rel]; ok && r.content == in.content && r.seq == view.Seq {
		return nil, r.problems, nil
	}
	if line := conflictMarker(data); line > 0 {
		return nil, []Problem{{
			Path: in.Path, Line: line, Reason: "contains merge conflict markers",
			Hint: "resolve the conflict and remove the markers",
		}}, nil
	}
	mine, pos, err := decodeIntent(data)
	if err != nil {
		return nil, problemsOf(in.Path, "fix it, or remove the file to have it written again", err), nil
	}
	now, err := presentDoc(view)
	if err != nil {
		return nil, nil, err
	}
	if mine.Revision == 0 {
		return nil, []Problem{in.incomplete(data, now.Revision)}, nil
	}
	c := comparison{in: in, mine: mine, now: now, pos: pos, view: view}
	if c.base, c.based = w.base(in.Intent, mine.Revision); !c.based {
		c.base, c.stale = now, mine.Revision > 0 && mine.Revision < now.Revision
	}
	events := c.run()
	if len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	in.seq = view.Seq
	if len(events) == 0 { // decided already, or nothing but its form changed
		w.imported[in.rel] = in.content
		return nil, nil, w.rewriteLater(in, mine, now, view)
	}
	for i := range events {
		e := &events[i]
		e.ID = fmt.Sprintf("file:%s:%d:%d", in.content, view.Seq, i)
		e.To, e.Actor = forge.Key{Project: w.project, Intent: in.Intent}, w.actor
	}
	in.Events = events
	return in, nil, nil
}

// incomplete refuses a file without its last line: it may be half of what the
// person wrote, because the disk was full or the editor died.
func (in *Input) incomplete(data []byte, now int64) Problem {
	return Problem{
		Path: in.Path, Line: 1 + bytes.Count(bytes.TrimRight(data, "\r\n"), []byte("\n")), Field: "revision",
		Reason: "is missing: it is the file's last line, so the file may be cut off",
		Hint:   fmt.Sprintf("if it is complete, add the line revision: %d; or remove the file to have it written again", now),
	}
}

// rewriteLater has the intent written again if its files lack something, or if
// this one does not say what is true. A person's comments may stay until then.
func (w *Workspace) rewriteLater(in *Input, mine, now document.Intent, view *forge.View) error {
	mine.Revision, now.Revision = 0, 0
	a, err := encodeIntent(mine)
	if err != nil {
		return err
	}
	b, err := encodeIntent(now)
	if err != nil {
		return err
	}
	if w.index.seqs[in.Intent] == view.Seq && bytes.Equal(a, b) {
		return nil
	}
	return w.rewrite(in.Intent, in.rel)
}

// presentDoc is the file as it would be written now, as a person would read it.
func presentDoc(view *forge.View) (document.Intent, error) {
	doc := document.IntentOf(view)
	doc.Revision = int64(view.Seq)
	data, err := encodeIntent(doc)
	if err != nil {
		return doc, err
	}
	doc, _, err = decodeIntent(data)
	return doc, err
}

// conflictMarker returns the line of a merge conflict's mark, or 0. In a value
// of several lines such a mark would be indented.
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

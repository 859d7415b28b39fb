package forgedir

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// draftSystem is the origin of intents that come from files. Together with the
// draft's path and content it makes the import of a draft repeatable.
const draftSystem = "workspace"

// Drafts reads intent-drafts/*.md: each as an input with one Submit event, or
// as problems. Drafts whose submission was refused are problems until their
// content changes. The inputs are in the order of their names.
func (w *Workspace) Drafts(ctx context.Context) ([]Input, []Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.renew(); err != nil {
		return nil, nil, err
	}
	entries, err := w.list(draftsDir)
	if err != nil {
		return nil, nil, err
	}
	var inputs []Input
	var problems []Problem
	named := map[forge.IntentID]string{} // the files by their ids
	for _, e := range entries {
		if !isDraft(e) {
			continue
		}
		in, bad, err := w.draft(ctx, path.Join(draftsDir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, bad...)
		if in == nil {
			continue
		}
		if first, taken := named[in.Intent]; taken {
			problems = append(problems, in.problem("id", fmt.Sprintf("is %s, as that of %s", in.Intent, first), "rename one of the two files"))
			continue
		}
		named[in.Intent] = e.Name()
		inputs = append(inputs, *in)
	}
	return inputs, problems, nil
}

// isDraft leaves out what editors keep beside a file. A directory or a named
// pipe counts: it is refused, so that nobody waits for it.
func isDraft(e fs.DirEntry) bool {
	name := e.Name()
	return strings.EqualFold(path.Ext(name), ".md") && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#")
}

func (w *Workspace) draft(ctx context.Context, rel string) (*Input, []Problem, error) {
	data, info, err := w.readSettled(ctx, rel, maxDraftBytes)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case isMissing(err):
		return nil, nil, nil
	case err != nil:
		return nil, []Problem{unreadable(shown(rel), err)}, nil
	}
	in := &Input{Path: shown(rel), rel: rel, content: digestOf(data), fields: []string{""}}
	if r, ok := w.refusals[rel]; ok && r.content == in.content {
		return nil, r.problems, nil
	}
	intent, problems := w.parseDraft(in, data, info.ModTime())
	if len(problems) > 0 {
		return nil, problems, nil
	}
	in.Intent = intent.ID
	in.Events = []forge.Event{{
		ID:      "draft:" + string(intent.ID) + ":" + in.content.String(),
		To:      forge.Key{Project: w.project, Intent: intent.ID},
		Actor:   w.actor,
		Message: &forge.Submit{Intent: *intent},
	}}
	return in, nil, nil
}

func (w *Workspace) parseDraft(in *Input, data []byte, written time.Time) (*forge.Intent, []Problem) {
	id, bad := draftID(in.Path)
	if bad != nil {
		return nil, []Problem{*bad}
	}
	doc, line, reason := splitDraft(data)
	if reason != "" {
		return nil, []Problem{{Path: in.Path, Line: line, Reason: reason, Hint: draftHint(reason)}}
	}
	var front document.Draft
	pos, err := strictyaml.Decode(doc.front, &front, strictyaml.Options{FirstLine: doc.frontLine})
	if err != nil {
		return nil, problemsOf(in.Path, "", err)
	}
	if strings.TrimSpace(doc.body) == "" {
		return nil, []Problem{{
			Path: in.Path, Line: doc.bodyLine, Field: "body", Reason: "is empty",
			Hint: "describe the change below the front matter, and why it is needed",
		}}
	}
	intent := draftIntent(&front, id, doc.body)
	intent.Project, intent.CreatedAt = w.project, written.UTC().Truncate(time.Second)
	intent.Origin = forge.Origin{System: draftSystem, EventID: norm.NFC.String(in.rel) + "@" + in.content.String(), Actor: w.actor}
	in.lines = draftLines(&front, pos, doc.bodyLine)
	problems := checkFront(in, &front, intent, pos)
	return intent, problems
}

// draftIntent returns the intent that a draft asks for.
func draftIntent(f *document.Draft, id forge.IntentID, body string) *forge.Intent {
	i := f.Intent()
	i.ID, i.Body, i.Source, i.Status = id, strings.Trim(body, "\n")+"\n", forge.SourceHuman, forge.StatusProposed
	if i.Title == "" {
		i.Title = titleOf(body)
	}
	return &i
}

// draftLines says where each field stands that something can be wrong with.
func draftLines(f *document.Draft, pos *strictyaml.Positions, body int) map[string]int {
	lines := map[string]int{"body": body}
	note := func(field string) {
		if pos.Has(field) {
			lines[field] = pos.Errorf(field, "").Line
		}
	}
	said := f.Intent()
	for _, field := range document.FieldsBy(document.Persons) {
		note(field.Name)
		if texts, list := field.Entries(&said); list {
			for i := range texts {
				note(fmt.Sprintf("%s[%d]", field.Name, i))
			}
		}
	}
	for name := range f.With {
		note("with." + name)
	}
	for field, value := range f.Goal.Values() {
		note(field)
		if list, ok := value.([]string); ok {
			for i := range list {
				note(fmt.Sprintf("%s[%d]", field, i))
			}
		}
	}
	return lines
}

// unnamed begins the ids of drafts whose names have no spelling in Latin letters.
const unnamed = "intent"

// draftID returns the id of the intent that a draft asks for. The file's name without .md
// is the id. A name in another script than ASCII cannot be one, and is spelled in ASCII
// instead (変更.md asks for bian-geng), always the same way. A name in ASCII that is no id
// is a problem: who can type the id is asked for it.
func draftID(shownPath string) (forge.IntentID, *Problem) {
	name := path.Base(shownPath)
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	id, err := forge.ParseIntentID(stem)
	if err != nil && spellable(stem) {
		id, err = forge.IntentID(slug.Named(unnamed, stem)), nil
	}
	if err == nil && ext == ".md" {
		return id, nil
	}
	p := &Problem{Path: shownPath, Field: "id", Reason: fmt.Sprintf("the file ends in %q, not in .md", ext)}
	if err != nil {
		p.Reason = reasonOf(err)
	}
	better := slug.Make(stem)
	if better == "" {
		better = "my-change"
	}
	p.Hint = fmt.Sprintf("the file's name is the intent's id: a-z, 0-9 and -, at most %d characters; rename it to %s.md", forge.MaxIDLength, better)
	return "", p
}

// spellable reports whether a file's name is text of another script, not ASCII or bytes
// that are no text.
func spellable(stem string) bool {
	return slug.Foreign(stem) && utf8.ValidString(stem) && !strings.ContainsFunc(stem, unicode.IsControl)
}

func draftHint(reason string) string {
	switch {
	case strings.Contains(reason, "---"):
		return "add a line of --- between the YAML and the text"
	case strings.Contains(reason, "UTF-8"):
		return "save the file as UTF-8 text"
	}
	return "remove it"
}

package drafts

import (
	"context"
	"errors"
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
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// System is the Origin.System of intents that come from drafts. Together with the
// draft's path and content, which are the Origin.EventID, it makes the import of a
// draft repeatable.
const System = "draft"

// Reader reads the drafts of one repository. It is not safe for concurrent use.
type Reader struct {
	// Project receives the events.
	Project forge.ProjectID
	// Actor is the person behind the drafts; may be empty.
	Actor string

	Disk *disk.Disk
	// Refusals has the drafts that the runner refused. Whoever gets the rulings adds them.
	Refusals person.Refusals
}

// Read reads intent-drafts/*.md: each as an input with one Submit event, or as
// problems. Drafts whose submission was refused are problems until their content
// changes. The inputs are in the order of their names; of two drafts of one id the
// second is a problem. Whatever is wrong with one draft, the others are read: an error
// means that the folder could not be read, or that ctx has ended.
func (r *Reader) Read(ctx context.Context) ([]person.Input, []person.Problem, error) {
	names, err := r.Disk.List(layout.Drafts)
	if err != nil {
		return nil, nil, err
	}
	var inputs []person.Input
	var problems []person.Problem
	// A name in another script is spelled in ASCII, so that two names can make one id.
	named := map[forge.IntentID]string{}
	for _, name := range names {
		if !isDraft(name) {
			continue
		}
		in, bad, err := r.read(ctx, path.Join(layout.Drafts, name))
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, bad...)
		if in == nil {
			continue
		}
		if first, taken := named[in.Intent]; taken {
			problems = append(problems, in.Problem("id", fmt.Sprintf("is %s, as that of %s", in.Intent, first), "rename one of the two files"))
			continue
		}
		named[in.Intent] = name
		inputs = append(inputs, *in)
	}
	return inputs, problems, nil
}

// isDraft leaves out the files that editors keep beside a draft. A directory or a
// named pipe counts as one: it is refused, so that its author does not wait for it.
func isDraft(name string) bool {
	return strings.EqualFold(path.Ext(name), ".md") && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#")
}

// read reads one draft, once it is saved completely; nil and no problems if it is gone.
// Its event has an id of its content: the same draft is never submitted twice, and a
// changed one is another event.
func (r *Reader) read(ctx context.Context, rel string) (*person.Input, []person.Problem, error) {
	data, info, err := r.Disk.ReadSettled(ctx, rel, disk.MaxDraft)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, []person.Problem{person.Unreadable(layout.Shown(rel), err)}, nil
	}
	in := &person.Input{
		Path:   layout.Shown(rel),
		Source: person.Source{Rel: rel, Content: disk.DigestOf(data), Fields: []string{""}},
	}
	if problems := r.Refusals.Of(in); problems != nil {
		return nil, problems, nil
	}
	intent, problems := r.parse(in, data, info.ModTime())
	if len(problems) > 0 {
		return nil, problems, nil
	}
	in.Intent = intent.ID
	in.Events = []forge.Event{{
		ID:      "draft:" + string(intent.ID) + ":" + in.Source.Content.String(),
		To:      forge.Key{Project: r.Project, Intent: intent.ID},
		Actor:   r.Actor,
		Message: &forge.Submit{Intent: *intent},
	}}
	return in, nil, nil
}

// parse makes an intent of a draft's content, and notes in the input where its fields
// are. Written is the time of the file. It stops at the first kind of problem: the
// name, the fences, the YAML, the body, and then the values, all of them at once.
func (r *Reader) parse(in *person.Input, data []byte, written time.Time) (*forge.Intent, []person.Problem) {
	id, bad := draftID(in.Path)
	if bad != nil {
		return nil, []person.Problem{*bad}
	}
	doc, line, reason := splitDraft(data)
	if reason != "" {
		return nil, []person.Problem{{Path: in.Path, Line: line, Reason: reason, Hint: draftHint(reason)}}
	}
	var front document.Draft
	pos, err := strictyaml.Decode(doc.front, &front, strictyaml.Options{FirstLine: doc.frontLine})
	if err != nil {
		return nil, person.Invalid(in.Path, "", err)
	}
	if strings.TrimSpace(doc.body) == "" {
		return nil, []person.Problem{{
			Path: in.Path, Line: doc.bodyLine, Field: "body", Reason: "is empty",
			Hint: "describe the change below the front matter, and why it is needed",
		}}
	}
	intent := draftIntent(&front, id, doc.body)
	intent.Project, intent.CreatedAt = r.Project, written.UTC().Truncate(time.Second)
	intent.Origin = forge.Origin{System: System, EventID: norm.NFC.String(in.Source.Rel) + "@" + in.Source.Content.String(), Actor: r.Actor}
	in.Source.Positions, in.Source.BodyLine = pos, doc.bodyLine
	return intent, check(in, &front, intent, pos)
}

// draftIntent returns the intent that a draft asks for, without the fields that depend on
// the file: project, origin and time. The title is that of the front matter, or else the
// body's first line.
func draftIntent(f *document.Draft, id forge.IntentID, body string) *forge.Intent {
	i := f.Intent()
	i.ID, i.Body, i.Source, i.Status = id, strings.Trim(body, "\n")+"\n", forge.SourceHuman, forge.StatusProposed
	if i.Title == "" {
		i.Title = titleOf(body)
	}
	return &i
}

// unnamed begins the ids of drafts whose names have no spelling in Latin letters.
const unnamed = "intent"

// draftID returns the id of the intent that a draft asks for. The file's name without .md
// is the id. A name in another script than ASCII cannot be one, and is spelled in ASCII
// instead (変更.md asks for bian-geng), always the same way. A name in ASCII that is no id
// is a problem: whoever can type the id is asked for it.
func draftID(shownPath string) (forge.IntentID, *person.Problem) {
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
	p := &person.Problem{Path: shownPath, Field: "id", Reason: fmt.Sprintf("the file ends in %q, not in .md", ext)}
	if err != nil {
		p.Reason = person.NoID(err)
	}
	better := slug.Make(stem)
	if better == "" {
		better = "my-change"
	}
	p.Hint = fmt.Sprintf("the file's name is the intent's id: a-z, 0-9 and -, at most %d characters; rename it to %s.md", forge.MaxIDLength, better)
	return "", p
}

// spellable reports whether a file's name is text of another script, not ASCII or bytes
// that are no text. Control characters make a name unfit, too.
func spellable(stem string) bool {
	return slug.Foreign(stem) && utf8.ValidString(stem) && !strings.ContainsFunc(stem, unicode.IsControl)
}

// draftHint returns the hint for a reason of splitDraft.
func draftHint(reason string) string {
	switch {
	case strings.Contains(reason, "---"):
		return "add a line of --- between the YAML and the text"
	case strings.Contains(reason, "UTF-8"):
		return "save the file as UTF-8 text"
	}
	return "remove it"
}

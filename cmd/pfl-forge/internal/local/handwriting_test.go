package local

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// hand is a way to change the text of an intent's file. It returns the new text
// and how many parts of it are marked, 0 if it does not suit.
type hand struct {
	kind   string
	change func(text, mark string) (string, int)
	never  bool // nobody can mean it
}

var (
	titleLine = regexp.MustCompile(`(?m)^title: .*$`)
	bodyBlock = regexp.MustCompile(`(?m)^body: .*\n(?:(?: .*)?\n)*`)
)

func retitle(text, mark string) (string, int) {
	return titleLine.ReplaceAllString(text, "title: "+mark+"a is the title"), 1
}

func rewrite(text, mark string) (string, int) {
	return bodyBlock.ReplaceAllString(text, "body: |\n  Another text.\n\n  "+mark+"b\n"), 1
}

func answer(text, mark string) (string, int) {
	out := strings.Replace(text, "answer: null", "answer: "+mark+"c says so", 1)
	if out == text {
		return text, 0
	}
	return out, 1
}

// both applies two changes in one save.
func both(a, b func(string, string) (string, int)) func(string, string) (string, int) {
	return func(text, mark string) (string, int) {
		text, n := a(text, mark)
		text, m := b(text, mark)
		return text, n + m
	}
}

// with changes the text at one more place.
func with(change func(string, string) (string, int), old, text string) func(string, string) (string, int) {
	return func(was, mark string) (string, int) {
		out, n := change(was, mark)
		if after := strings.Replace(out, old, text, 1); after != out {
			return after, n
		}
		return was, 0
	}
}

var hands = []hand{
	{"title", retitle, false},
	{"body", rewrite, false},
	{"title and body", both(retitle, rewrite), false},
	{"answer", answer, false},
	{"title and answer", both(retitle, answer), false},
	{"type", func(text, mark string) (string, int) {
		return regexp.MustCompile(`(?m)^type: .*$`).ReplaceAllString(text, "type: "+mark+"d"), 1
	}, false},
	{"risk and title", with(retitle, "risk: med", "risk: high"), false},
	{"lower risk and title", with(retitle, "risk: med", "risk: low"), false},
	{"approval and title", with(retitle, "status: proposed", "status: approved"), false},
	{"carriage returns", func(text, mark string) (string, int) {
		text, n := retitle(text, mark)
		return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"), n
	}, false},
	{"no newline at the end", func(text, mark string) (string, int) {
		text, n := retitle(text, mark)
		return strings.TrimRight(text, "\n"), n
	}, false},
	{"key taken out", with(retitle, "parent: null\n", ""), false},

	{"approval and body", with(rewrite, "status: proposed", "status: approved"), true},
	{"status done", with(retitle, "status: ", "status: rejected # "), true},
	{"source", with(retitle, "source: human", "source: system"), true},
	{"unknown key", with(both(retitle, answer), "title: ", "titel: x\ntitle: "), true},
	{"twice the key", with(retitle, "title: ", "risk: low\nrisk: low\ntitle: "), true},
	{"two documents", with(retitle, "revision: ", "---\nrevision: "), true},
	{"conflict marks", with(retitle, "title: ", "<<<<<<< mine\ntitle: "), true},
	{"no YAML", with(rewrite, "body: |", "body: [}"), true},
	{"empty title", with(rewrite, "title: ", "title: '' #"), true},
	{"cut off", func(text, mark string) (string, int) {
		text, n := rewrite(text, mark)
		return text[:strings.Index(text, mark)+len(mark)+1], n
	}, true},
	{"cut off in a key", func(text, mark string) (string, int) {
		text, n := rewrite(text, mark)
		return text[:strings.Index(text, mark)+len(mark)+3], n
	}, true},
	{"another intent", with(retitle, "event_id: ", "event_id: x"), true},
}

// ways are how editors save.
var ways = []struct {
	name string
	save func(path, text string) error
}{
	{"in place", func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }},
	{"in place, in small pieces", func(path, text string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		for len(text) > 0 {
			n := min(len(text), 40)
			if _, err := f.WriteString(text[:n]); err != nil {
				return err
			}
			text = text[n:]
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return f.Close()
	}},
	{"by a rename", func(path, text string) error {
		next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
		if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Rename(next, path)
	}},
	{"the old one moved away first", func(path, text string) error {
		if err := os.Rename(path, path+"~"); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Remove(path + "~")
	}},
	{"read only, by a rename", func(path, text string) error {
		next := path + ".new"
		if err := os.WriteFile(next, []byte(text), 0o444); err != nil {
			return err
		}
		return os.Rename(next, path)
	}},
}

// save changes the file of an intent in one of these ways.
func (p *person) save(s *sheet) bool {
	text, there := p.read(s.rel)
	if !there || !strings.Contains(text, "\nrevision: ") {
		return false // the person looks at it just when it is written
	}
	h := hands[p.rng.IntN(len(hands))]
	switch n := p.rng.IntN(4); {
	case s.overtaken: // somebody gave a command meanwhile
		s.overtaken = false
		text, h = s.buffer, hands[slices.IndexFunc(hands, func(h hand) bool { return h.kind == "title and answer" })]
	case n == 0 && s.buffer != "": // an editor has shown this for a while
		text = s.buffer
	case n == 1:
		s.buffer = text
	}
	mark := p.mark()
	text, n := h.change(text, mark)
	if n == 0 {
		return false
	}
	way := ways[p.rng.IntN(len(ways))]
	e := &edit{n: p.made, kind: h.kind, how: way.name, rel: s.rel, never: h.never}
	for _, part := range markShape.FindAllString(text, -1) {
		if strings.HasPrefix(part, mark) && part[:len(part)-1] == mark {
			e.marks = append(e.marks, part)
		}
	}
	if p.rng.IntN(4) == 0 {
		e.comment = mark + "y"
		text = "# " + e.comment + "\n" + strings.TrimPrefix(text, "\ufeff")
	}
	e.text = text
	if err := way.save(p.path(s.rel), text); err != nil {
		p.t.Fatalf("%s: %v", e, err)
	}
	s.edit = e
	p.edits = append(p.edits, e)
	return true
}

// scribble writes into a file that is only shown.
func (p *person) scribble() bool {
	var names []string
	for _, pattern := range []string{"work/*.yaml", "reviews/*.yaml", "knowledge/history/*.yaml", "state.yaml"} {
		found, err := filepath.Glob(p.path(pattern))
		p.must(err)
		names = append(names, found...)
	}
	if len(names) == 0 {
		return false
	}
	name := names[p.rng.IntN(len(names))]
	rel, err := filepath.Rel(p.path("."), name)
	p.must(err)
	if slices.ContainsFunc(p.scribbled, func(s scribbled) bool { return s.rel == rel }) {
		return false
	}
	p.must(os.WriteFile(name, []byte("status: mine # "+p.mark()+"x\n"), 0o644))
	p.scribbled = append(p.scribbled, scribbled{rel, p.mark() + "x"})
	p.shown++
	return true
}

// command answers or approves as others do, while an editor still shows what was
// there before.
func (p *person) command(s *sheet) bool {
	text, there := p.read(s.rel)
	id := forge.IntentID(strings.TrimSuffix(path.Base(s.rel), ".yaml"))
	v, err := runner.View(p.t.Context(), p.commands.Bus, p.key(id))
	p.must(err)
	ev := forge.Event{ID: "command-" + p.mark(), To: p.key(id), Actor: "grace"}
	e := &edit{n: p.made, kind: "command", rel: s.rel, fate: taken}
	i := slices.IndexFunc(v.Intent.Clarifications, func(c forge.Clarification) bool { return c.Answer == nil })
	switch {
	case !there:
		return false
	case i >= 0:
		ev.Message = &forge.Answer{Index: i, Answer: p.mark() + "w"}
		e.marks = []string{p.mark() + "w"}
	case v.Summary.Waiting == forge.WaitingApproval:
		ev.Message = &forge.Approve{Plan: v.Summary.Plan}
	default:
		return false
	}
	r, err := p.commands.Bus.Submissions.Ask(p.t.Context(), ev)
	p.must(err)
	if r.Decision != forge.Applied {
		p.t.Errorf("%s: %+v", e, r)
	}
	s.buffer, s.overtaken = text, forge.As[*forge.Answer](ev.Message) != nil
	p.edits = append(p.edits, e)
	p.commanded++
	return true
}

func (p *person) key(id forge.IntentID) forge.Key {
	return forge.Key{Project: p.repo.Project, Intent: id}
}

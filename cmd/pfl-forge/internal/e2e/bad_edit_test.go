package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// What a person writes into the file of an intent and cannot mean is refused with
// its line, and their bytes stay.
func TestBadEdits(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	r := newRepo(t, map[string]string{"pfl-forge.yaml": `recipes:
  ask: {params: [{name: WHO}], run: 'echo "$WHO" > "$FORGE_INTENT.txt"'}
`})
	edits := []struct{ name, from, to, field, says string }{
		{"done", "status: proposed", "status: done", "status", "can only be set to approved"},
		{"unknown-key", "title:", "titel: x\ntitle:", "titel", `did you mean "title"`},
		{"twice", "title:", "title: x\ntitle:", "title", "duplicate key"},
		{"documents", "revision:", "---\nrevision:", "", "document"},
		{"bomb", "title:", bomb("labels") + "title:", "labels[0]", "anchor"},
		{"latin", "Please.", "caf\xe9", "", "UTF-8"},
		{"conflict", "title:", "<<<<<<< mine\ntitle: x\n=======\n>>>>>>> theirs\ntitle:", "", "merge conflict"},
		{"source", "source: human", "source: system", "source", "cannot be changed here"},
		{"number", "answer: null", "answer: [1]", "clarifications[0].answer", "single value"},
		{"title", "title:", "title: ''\n#", "title", "empty"},
	}
	ids := make([]string, 0, len(edits))
	for _, e := range edits {
		ids = append(ids, e.name)
		r.draft(e.name, "recipe: ask")
	}
	r.draft("fine", "recipe: ask")
	r.must(3, "run")
	written := map[string]string{}
	for _, e := range edits {
		path := ".forge/intents/" + e.name + ".yaml"
		was := r.read(path)
		if written[path] = strings.Replace(was, e.from, e.to, 1); written[path] == was {
			t.Fatalf("%s has no %q:\n%s", path, e.from, was)
		}
		r.write(path, written[path])
	}
	fine := ".forge/intents/fine.yaml"
	r.write(fine, strings.Replace(r.read(fine), "answer: null", "answer: me", 1))
	r.must(3, "run")
	r.wantStatus("done", "fine")
	r.wantStatus("proposed", ids...)
	s := r.status()
	for _, e := range edits {
		path := ".forge/intents/" + e.name + ".yaml"
		if r.read(path) != written[path] {
			t.Errorf("%s was overwritten:\n%s", path, r.read(path))
		}
		i := slices.IndexFunc(s.Problems, func(p problem) bool { return p.Path == path })
		if i < 0 {
			t.Errorf("%s is not refused", path)
			continue
		}
		p := s.Problems[i]
		if p.Field != e.field || p.Line == 0 {
			t.Errorf("%s: line %d, field %q; want field %q: %s", path, p.Line, p.Field, e.field, p.Reason)
		}
		contains(t, path, p.Reason+" "+p.Hint, e.says)
	}
	// Without the file the intent goes on: its file is written anew, and can be edited.
	remove(r, ".forge/intents/bomb.yaml")
	r.must(0, "answer", "bomb", "you")
	contains(t, "the file written anew", r.read(".forge/intents/bomb.yaml"), "answer: you")
	r.must(3, "run")
	r.wantStatus("done", "bomb")
	r.tidy()
}

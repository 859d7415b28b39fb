package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// Report is the outcome of the demo.
type Report struct {
	Scenes []Scene
	// Log has the commits of the branch, the newest first.
	Log []objects.LogLine
	// Views are those of all intents, sorted by id.
	Views []forge.View
}

// OK reports whether everything went as planned.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Scenes, func(s Scene) bool { return len(s.Differs) > 0 })
}

// Scene is one thing that the demo shows.
type Scene struct {
	// Name names the intents of the scene, for people.
	Name string
	// Shows says what it is about.
	Shows string
	// Fact describes this run, such as how many intents were implemented at
	// once.
	Fact string
	// Differs has a line for each difference from the plan; empty if it went as
	// planned.
	Differs []string
}

// Examine looks at what a run left in a repository that Create made.
func Examine(ctx context.Context, repo *local.Repository, log *slog.Logger) (*Report, error) {
	e, err := collect(ctx, repo, log)
	if err != nil {
		return nil, err
	}
	r := &Report{Scenes: e.scenes(), Log: e.log}
	for _, v := range e.views {
		r.Views = append(r.Views, v)
	}
	slices.SortFunc(r.Views, func(a, b forge.View) int { return strings.Compare(string(a.Intent.ID), string(b.Intent.ID)) })
	return r, nil
}

// scenes looks at every scene. Each one is judged by itself: what goes wrong in
// one does not hide the others.
func (e *evidence) scenes() []Scene {
	list := []struct {
		name, shows string
		look        func(*stage)
	}{
		{"all of them", "intents are worked on in parallel", (*stage).parallel},
		{"handbook", "tasks that depend on others wait until those are merged", (*stage).dependentTasks},
		{"tidy-languages", "one intent, a task for each file", (*stage).fanOut},
		{"glossary", "a review rejects, the second attempt is approved", (*stage).rejected},
		{"language-spanish", "verify fails, the second attempt repairs it", (*stage).repaired},
		{"changelog-*", "two changes to the same lines: the later one is made again, both are merged", (*stage).conflict},
		{"name-the-program", "a question to a person", (*stage).question},
		{"remove-legacy", "too risky to continue without approval", (*stage).approval},
	}
	scenes := make([]Scene, len(list))
	for i, l := range list {
		s := &stage{evidence: e, Scene: Scene{Name: l.name, Shows: l.shows}}
		l.look(s)
		scenes[i] = s.Scene
	}
	return scenes
}

// stage is where a scene is looked at.
type stage struct {
	*evidence
	Scene
}

// expect notes a difference from the plan, unless there is none.
func (s *stage) expect(ok bool, format string, args ...any) {
	if !ok {
		s.Differs = append(s.Differs, fmt.Sprintf(format, args...))
	}
}

// content compares a checked-out file.
func (s *stage) content(name, want string) {
	got := s.file(name)
	s.expect(got == want, "%s should be %q, and is %q", name, want, got)
}

// done returns the view of an intent that should be done: with that number of
// tasks, all of them on the branch, and files that say so.
func (s *stage) done(id forge.IntentID, tasks int) *forge.View {
	v := s.views[id]
	s.expect(v.Summary.Status == forge.StatusDone, "%s should be done, and is %q: %s", id, v.Summary.Status, v.Summary.Reason)
	s.expect(len(v.Tasks) == tasks, "%s should have %d tasks, and has %d", id, tasks, len(v.Tasks))
	s.expect(len(v.History) == 1, "%s should have one finished run, and has %d", id, len(v.History))
	for i := range v.Tasks {
		t := &v.Tasks[i]
		s.expect(s.merged(t.Commit), "commit %q of %s should be on %s", t.Commit, t.ID, branch)
		s.expect(s.exists(fmt.Sprintf(".forge/work/%s.yaml", t.ID)), ".forge/work/%s.yaml should be there", t.ID)
	}
	s.expect(s.exists(fmt.Sprintf(".forge/knowledge/history/%s-1.yaml", id)), ".forge/knowledge/history/%s-1.yaml should be there", id)
	return &v
}

// waits returns the view of an intent that should wait for a person.
func (s *stage) waits(id forge.IntentID, what forge.Waiting) *forge.View {
	v := s.views[id]
	s.expect(v.Summary.Waiting == what, "%s should wait for %s, and waits for %q: %s", id, what, v.Summary.Waiting, v.Summary.Reason)
	s.expect(s.exists(fmt.Sprintf(".forge/intents/%s.yaml", id)), ".forge/intents/%s.yaml should be there", id)
	return &v
}

// ruled returns the detail of the adjustment that a rule made to an intent; empty if there
// was none.
func ruled(v *forge.View, rule string) string {
	for i := range v.History {
		for _, a := range v.History[i].Adjustments {
			if a.Rule == rule {
				return a.Detail
			}
		}
	}
	return ""
}

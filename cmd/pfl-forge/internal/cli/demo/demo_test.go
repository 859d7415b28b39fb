package demo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
)

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	got, err := Create(t.Context(), dir)
	if err != nil || got != dir {
		t.Fatalf("made %q: %v", got, err)
	}
	r := gittest.At(t, dir)
	if status := r.Git("status", "--porcelain"); status != "" {
		t.Errorf("not all is committed:\n%s", status)
	}
	if files := r.Git("ls-files", ".forge"); files != "" {
		t.Errorf("committed:\n%s", files)
	}
	project, err := config.Parse([]byte(r.Show("main", "pfl-forge.yaml") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range Intents() {
		text, err := os.ReadFile(filepath.Join(dir, ".forge", "intent-drafts", id+".md"))
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(string(text), "recipe: ")
		name, _, _ = strings.Cut(name, "\n")
		if _, ok := project.Recipes[name]; !ok {
			t.Errorf("%s: there is no recipe %q", id, name)
		}
	}
	if _, err := Create(t.Context(), dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("made over a folder that is in use: %v", err)
	}
}

// Whatever did not happen is noticed: each scene by itself.
func TestScenesNotice(t *testing.T) {
	e := &evidence{root: t.TempDir(), views: map[forge.IntentID]forge.View{}}
	for _, s := range e.scenes() {
		if len(s.Differs) == 0 {
			t.Errorf("%s: nothing happened, and it is content", s.Name)
		}
	}
	for _, id := range Intents() {
		e.views[forge.IntentID(id)] = forge.View{Summary: forge.Summary{Status: forge.StatusDone}}
	}
	for _, s := range e.scenes() {
		if len(s.Differs) == 0 {
			t.Errorf("%s: an intent is just done, and it is content", s.Name)
		}
	}
	r := Report{Scenes: e.scenes()}
	if r.OK() {
		t.Error("the report says that all is well")
	}
}

// README shows what the demo prints: its scenes, the titles of its intents as commits, and
// where to look.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	e := &evidence{root: t.TempDir(), views: map[forge.IntentID]forge.View{}}
	var lines []string
	for _, s := range e.scenes() {
		lines = append(lines, "  ok    "+s.Name, s.Shows)
	}
	for _, f := range demoFiles {
		lines = append(lines, f.path, f.what)
	}
	for _, line := range lines {
		if !strings.Contains(string(readme), line) {
			t.Errorf("README.md does not show %q", line)
		}
	}
}

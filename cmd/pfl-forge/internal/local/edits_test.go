package local

import (
	"flag"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

var (
	editSeed  = flag.Uint64("edits.seed", 1, "what the random edits by hand are made from")
	editCount = flag.Int("edits.n", testsize.Of(10, 200), "how many edits by hand are made")
)

const editConfig = `parallel_workers: 2
recipes:
  ask:
    params: [{name: WHO}, {name: WHAT}]
    run: echo "$WHO $WHAT" > "$FORGE_INTENT.txt"
  risky:
    risk: med
    run: echo x > "$FORGE_INTENT.txt"
  plain:
    tasks:
      - {name: first, run: 'echo x > "$FORGE_TASK.txt"'}
      - {name: second, run: 'echo x > "$FORGE_TASK.txt"', depends_on: [first]}
`

// A person edits files while a run reads and writes them: nothing of it is lost,
// nothing is taken in by halves, and in the end the files say what the log says.
func TestRandomEdits(t *testing.T) {
	testsize.OnlyFull(t)
	repo := newRepository(t, map[string]string{"pfl-forge.yaml": editConfig})
	p := &person{
		t: t, repo: repo, rng: rand.New(rand.NewPCG(*editSeed, *editSeed)), log: &journaled{marks: map[string]int{}},
		known: map[string]bool{},
	}
	defer func() {
		if t.Failed() {
			t.Logf("again with: go test ./cmd/pfl-forge/internal/local -run TestRandomEdits -edits.seed %d -edits.n %d", *editSeed, *editCount)
		}
	}()
	for range 8 {
		for _, recipe := range []string{"ask", "risky", "plain"} {
			p.draft(recipe, true)
		}
	}
	end := runningWith(t, repo, p.log)
	var err error
	if p.commands, err = Open(t.Context(), repo, logger(t)); err != nil {
		t.Fatal(err)
	}
	settled := false
	t.Cleanup(func() {
		if !settled {
			p.left()
		}
	})
	wait.Moving(t, "every edit is taken in or refused", func() bool {
		for p.look() || p.made < *editCount && p.act() {
			p.moves++
		}
		return p.made >= *editCount && !p.busy() && p.ended()
	}, func() int { return p.moves })
	settled = true
	p.commands.Close(t.Context())
	if o := end(); o == nil || !o.Interrupted {
		t.Errorf("outcome %+v", o)
	}
	p.check()
	agree(t, repo)
	files := schematest.Check(t, repo.Root)
	for _, kind := range []string{"intent", "task", "review", "history", "state", "draft", "pfl-forge"} {
		if files[kind] == 0 {
			t.Errorf("there is no %s to check by its schema: %v", kind, files)
		}
	}
	t.Logf("%d edits: %d taken in, %d refused, %d of what is only shown, %d removed, %d commands; %d intents",
		p.made, p.taken, p.refused, p.shown, p.removed, p.commanded, len(p.sheets))
}

// check looks at the end at everything that was ever written.
func (p *person) check() {
	p.t.Helper()
	kept := p.keptText()
	for _, e := range p.edits {
		n := 0
		for _, mark := range e.marks {
			n += min(p.log.count(mark), 1)
		}
		switch {
		case e.fate == refused && n > 0:
			p.t.Errorf("%s was refused, and %d of %d parts are in the log", e, n, len(e.marks))
		case e.fate == taken && n != len(e.marks):
			p.t.Errorf("%s was taken in, and %d of %d parts are in the log", e, n, len(e.marks))
		}
		if e.comment != "" && e.fate == taken && !strings.Contains(kept, e.comment) {
			p.t.Errorf("the comment of %s is lost", e)
		}
	}
	for mark, n := range p.log.all() {
		if n > 1 {
			p.t.Errorf("%s was taken in %d times", mark, n)
		}
	}
}

// agree compares the files to those of a desk on which nothing ever happened.
func agree(t *testing.T, repo *Repository) {
	t.Helper()
	s, err := OpenReader(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	fresh := t.TempDir()
	files, err := forgedir.Open(fresh, forgedir.Options{Project: repo.Project})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	all, err := s.Bus.Journal.Summaries(t.Context(), repo.Project)
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range all {
		v, err := runner.View(t.Context(), s.Bus, sum.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := files.WriteState(all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(projected(t, fresh), projected(t, repo.Root)); diff != "" {
		t.Errorf("the files do not say what the log says (-log +files):\n%s", diff)
	}
}

// projected returns what the log made of a .forge folder, without the revisions:
// those depend on when a file was written.
func projected(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"intents/*", "work/*", "reviews/*", "reports/*", "knowledge/history/*", "*.yaml", "cache/staging/*"} {
		names, err := filepath.Glob(filepath.Join(root, layout.Dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(root, name)
			s := string(text)
			if i := strings.LastIndex(s, "\nrevision: "); i >= 0 && path.Base(path.Dir(filepath.ToSlash(rel))) == "intents" {
				s = s[:i+1]
			}
			files[filepath.ToSlash(rel)] = s
		}
	}
	return files
}

// ended reports whether some intent is told of as history.
func (p *person) ended() bool {
	list, _ := filepath.Glob(filepath.Join(p.repo.Root, layout.Dir, layout.History, "*"))
	return len(list) > 0
}

// intentOf names the intent of a draft.
func intentOf(n int) forge.IntentID {
	return forge.IntentID("intent-" + string(rune('a'+n/26)) + string(rune('a'+n%26)))
}

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// trusting returns a guard that trusts what the repository brings.
func trusting(t *testing.T, repo *Repository, base *Base) *trust.Guard {
	t.Helper()
	g, err := trust.NewGuard(trust.Store{}, repo.Store)
	if err != nil {
		t.Fatal(err)
	}
	g.Pass(config.Digest(base.Config.Powers()))
	return g
}

// runOnce works until nothing can go on.
func runOnce(t *testing.T, repo *Repository) *Outcome {
	t.Helper()
	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := Run(t.Context(), RunConfig{Repo: repo, Base: base, Observer: quietly{}, Log: logger(t), Trust: trusting(t, repo, base)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func change(t *testing.T, repo *Repository, rel string, pairs ...string) {
	t.Helper()
	name := filepath.Join(repo.Root, ".forge", filepath.FromSlash(rel))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	after := strings.NewReplacer(pairs...).Replace(string(text))
	if after == string(text) {
		t.Fatalf("%s holds none of %q:\n%s", rel, pairs, text)
	}
	if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T, repo *Repository) forge.View {
	t.Helper()
	s, err := OpenReader(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	v, err := runner.View(t.Context(), s.Bus, forge.Key{Project: repo.Project, Intent: "one"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func drafted(t *testing.T, config, front string) *Repository {
	t.Helper()
	repo := newRepository(t, map[string]string{"pfl-forge.yaml": config})
	dir := filepath.Join(repo.Root, ".forge", "intent-drafts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "one.md"), []byte("---\n"+front+"\n---\nDo it\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	runOnce(t, repo)
	return repo
}

const touch = "recipes:\n  touch: {run: 'echo x > \"$FORGE_INTENT\"'}\n"

// What is refused by the rules alone takes everything else of the save with it.
func TestSaveIsTakenInAsAWhole(t *testing.T) {
	repo := drafted(t, touch+"policy: {approvers: [grace]}\n", "recipe: touch\nrisk: high")
	before := loaded(t, repo)
	change(t, repo, "intents/one.yaml", "title: Do it", "title: Do that", "status: proposed", "status: approved")
	o := runOnce(t, repo)
	if len(o.Problems) != 1 || o.Problems[0].Field != "status" || !strings.Contains(o.Problems[0].Hint, "nothing of this version was imported") {
		t.Errorf("problems %v", o.Problems)
	}
	if after := loaded(t, repo); after.Seq != before.Seq || after.Intent.Title != "Do it" {
		t.Errorf("title %q, journal at %d, want %d", after.Intent.Title, after.Seq, before.Seq)
	}
	change(t, repo, "intents/one.yaml", "status: approved", "status: proposed")
	if o := runOnce(t, repo); len(o.Problems) > 0 || loaded(t, repo).Intent.Title != "Do that" {
		t.Errorf("without the approval: %v", o.Problems)
	}
}

// An approval that the same save made needless is no mistake.
func TestLowerRiskAndApproval(t *testing.T) {
	repo := drafted(t, touch, "recipe: touch\nrisk: high")
	change(t, repo, "intents/one.yaml", "risk: high", "risk: low", "status: proposed", "status: approved")
	o := runOnce(t, repo)
	if v := loaded(t, repo); v.Summary.Status != forge.StatusDone || len(o.Problems) > 0 {
		t.Errorf("status %s, problems %v", v.Summary.Status, o.Problems)
	}
}

// What a person wrote where nobody reads it is told, also if nothing else happens.
func TestChangeOfWhatIsOnlyShownIsTold(t *testing.T) {
	testsize.OnlyFull(t)
	repo := drafted(t, touch, "recipe: touch")
	for _, rel := range []string{"work/one-001.yaml", "state.yaml"} {
		change(t, repo, rel, "status: done", "status: pending")
		o := runOnce(t, repo)
		if len(o.Problems) != 1 || o.Problems[0].Path != ".forge/"+rel || !strings.Contains(o.Problems[0].Hint, ".forge/kept/") {
			t.Errorf("%s: problems %v", rel, o.Problems)
		}
		if list, err := repo.Problems(); err != nil || len(list) != 1 {
			t.Errorf("%s: other commands see %v, %v", rel, list, err)
		}
		if o := runOnce(t, repo); len(o.Problems) > 0 {
			t.Errorf("%s: told twice: %v", rel, o.Problems)
		}
	}
}

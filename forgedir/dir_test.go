package forgedir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// fixture is a repository with its folder, as a person and a runner use it.
type fixture struct {
	*Dir
	t    testing.TB
	root string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	d := &fixture{t: t, root: t.TempDir()}
	d.reopen()
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// reopen stands for the next run.
func (d *fixture) reopen() {
	d.t.Helper()
	if d.Dir != nil {
		_ = d.Close()
	}
	w, err := Open(d.root, Options{Project: "demo", Actor: "person"})
	if err != nil {
		d.t.Fatal(err)
	}
	w.disk.Settle, w.disk.Flush = 0, noFlush
	d.Dir = w
}

// noFlush is enough for a process that is killed on a machine that goes on.
func noFlush(*os.File) error { return nil }

func (d *fixture) file(rel string) string {
	return filepath.Join(d.root, layout.Dir, filepath.FromSlash(rel))
}

// put writes a file in place, as simple editors do.
func (d *fixture) put(rel, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.file(rel), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// save replaces a file, as careful editors do.
func (d *fixture) save(rel, text string) {
	d.t.Helper()
	tmp := d.file(rel) + "~"
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(tmp, d.file(rel)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) rename(from, to string) {
	d.t.Helper()
	if err := os.Rename(d.file(from), d.file(to)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) remove(rel string) {
	d.t.Helper()
	if err := os.Remove(d.file(rel)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) text(rel string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.file(rel))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// replace edits a file by hand.
func (d *fixture) replace(rel, old, text string) {
	d.t.Helper()
	before := d.text(rel)
	if !strings.Contains(before, old) {
		d.t.Fatalf("%s holds no %q:\n%s", rel, old, before)
	}
	d.put(rel, strings.Replace(before, old, text, 1))
}

func (d *fixture) write(v forge.View) []Problem {
	d.t.Helper()
	problems, err := d.Write(v)
	if err != nil {
		d.t.Fatal(err)
	}
	return problems
}

func (d *fixture) drafts() ([]Input, []Problem) {
	d.t.Helper()
	inputs, problems, err := d.Drafts(d.context())
	if err != nil {
		d.t.Fatal(err)
	}
	return inputs, problems
}

func (d *fixture) edits(views ...forge.View) ([]Input, []Problem) {
	d.t.Helper()
	inputs, problems, err := d.Edits(d.context(), func(id forge.IntentID) (forge.View, bool) {
		for _, v := range views {
			if v.Intent.ID == id {
				return v, true
			}
		}
		return forge.View{}, false
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return inputs, problems
}

func (d *fixture) context() context.Context { return context.Background() }

// everything returns the content of every file of the folder, by path.
func (d *fixture) everything() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(d.root, layout.Dir)), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all[p] = d.text(p)
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// under returns the files below a directory, without what is kept for a while.
func (d *fixture) under(dir string) []string {
	var names []string
	for p := range d.everything() {
		if strings.HasPrefix(p, dir+"/") {
			names = append(names, p)
		}
	}
	return names
}

func rulings(in Input, decision forge.Decision) []forge.Ruling {
	out := make([]forge.Ruling, len(in.Events))
	for i := range out {
		out[i] = forge.Ruling{EventID: in.Events[i].ID, Decision: decision, Intent: in.Intent}
	}
	return out
}

// sample is an intent in the middle of its life.
func sample() forge.View {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	answer := "RFC 5322"
	return forge.View{
		Seq: 7,
		Summary: forge.Summary{
			Key: forge.Key{Project: "demo", Intent: "fix-login"}, Title: "Mend the login check", Type: "fix",
			Status: forge.StatusProposed, Risk: forge.RiskMed, Source: forge.SourceHuman, RunSummary: forge.RunSummary{
				Run:   1,
				Tasks: []forge.TaskSummary{{ID: "fix-login-001", Title: "Check the form", Status: forge.TaskPending}},
			},
			Waiting: forge.WaitingApproval, Reason: "risk med: read the plan, then approve or reject", Plan: "9f2c",
			CreatedAt: at, UpdatedAt: at.Add(time.Minute),
		},
		Intent: forge.Intent{
			ID: "fix-login", Project: "demo", Settings: forge.Settings{
				Title:      "Mend the login check",
				Body:       "Addresses are not checked.\n\nThey should be.\n",
				Type:       "fix",
				Risk:       forge.RiskMed,
				DependsOn:  []forge.IntentID{"add-tests"},
				Attributes: forge.Attributes{Labels: []string{"login"}},
				Recipe:     "check",
				With:       map[string]string{"FORM": "login", "LEVEL": "010"},
			},
			Source: forge.SourceHuman, Status: forge.StatusProposed,
			Clarifications: []forge.Clarification{
				{Question: "Which rules?", Context: "There are several.", SuggestedAnswers: []string{"RFC 5322", "simple"}, Answer: &answer},
				{Question: "Old accounts too?"},
			},
			Origin: forge.Origin{System: drafts.System, EventID: "intent-drafts/fix-login.md@00"}, CreatedAt: at,
		},
		Tasks: []forge.Task{{
			ID: "fix-login-001", IntentID: "fix-login", Title: "Check the form", Plan: "Read it.\nMend it.\n",
			RelevantFiles: []string{"login.go"}, Steps: []string{"read", "mend"}, Complexity: forge.ComplexityLow,
			Status: forge.TaskPending, Attempts: 1, Base: "aaaa", Head: "bbbb",
		}},
		Reviews: []forge.Review{{
			TaskID: "fix-login-001", Attempt: 1, Head: "bbbb", Verdict: forge.VerdictRejected,
			Issues: []string{"no test"}, Suggestions: []string{"add one"}, CreatedAt: at,
		}},
		History: []forge.History{{
			IntentID: "fix-login", Run: 1, IntentType: "fix", IntentRisk: forge.RiskMed, Source: forge.SourceHuman,
			Title: "Mend the login check", Flow: []forge.Step{forge.StepAnalyze, forge.StepImplement},
			Adjustments: []forge.Adjustment{{Rule: "review-rejected", TaskID: "fix-login-001", Detail: "once more", At: at}},
			StepResults: []forge.StepRecord{{
				Step: forge.StepAnalyze, Attempt: 1, Outcome: "ok", Duration: 1500 * time.Millisecond, Session: "s-1",
				Agent: "recipe", Model: "none", Executor: forge.ExecutorPods, Usage: forge.Usage{InputTokens: 10, OutputTokens: 2, CostUSD: 0.25}, At: at,
			}},
			Outcome: forge.OutcomeFailed, FailureReason: "no test", CreatedAt: at,
			Observations: []forge.Observation{{Content: "seen", Source: forge.StepReview, IntentID: "fix-login", CreatedAt: at}},
		}},
		Observations: []forge.Observation{{
			Content:  "Two forms check the same: by hand",
			Evidence: []forge.Evidence{{Type: forge.EvidenceFile, Ref: "login.go"}, {Type: forge.EvidenceFile, Ref: "signup.go"}},
			Source:   forge.StepImplement, IntentID: "fix-login", CreatedAt: at,
		}},
	}
}

func exists(t testing.TB, name string) bool {
	t.Helper()
	_, err := os.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func writeText(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

package outside

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// commit returns a commit's name, which looks like one: it is in pictures.
func commit(n int) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n), byte(n >> 8)}))[:40]
}

// works has workers carry out an intent whose change fails to verify, then is
// rejected, then is good.
func (w *world) works() {
	w.t.Helper()
	w.carries(func(_ context.Context, c *forge.Command) (forge.Output, []byte) {
		if c.Attempt.Step == forge.StepImplement {
			return produced(c), changed(c.Attempt.Number)
		}
		return produced(c), nil
	})
}

// carries has workers answer commands by a function, which also returns the
// change to store; nil for none.
func (w *world) carries(out func(context.Context, *forge.Command) (forge.Output, []byte)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.t.Cleanup(func() { cancel(); running.Wait() })
	for _, step := range []forge.Step{forge.StepImplement, forge.StepRebase, forge.StepReview, forge.StepMerge} {
		running.Go(func() {
			err := w.bus.Commands.Consume(ctx, work.Config{Step: step, Replica: "one", Parallel: 4}, func(ctx context.Context, j *work.Job) error {
				r := forge.Result{
					To: j.Command.To, Attempt: j.Command.Attempt, Replica: "one", Agent: "claude", Model: "small",
					Usage: forge.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: 0.25, Turns: 1},
				}
				var text []byte
				if r.Output, text = out(ctx, &j.Command); r.Output == nil {
					return ctx.Err()
				}
				if rv := forge.As[*forge.Review](r.Output); rv != nil && rv.Second {
					r.Agent, r.Model = rv.By.Agent, "other"
				}
				if err := w.stores(ctx, &r, text); err != nil {
					return err
				}
				return w.bus.Results.Publish(ctx, r)
			})
			if err != nil {
				w.t.Error(err)
			}
		})
	}
}

// produced is what comes out of a step.
func produced(c *forge.Command) forge.Output {
	made := c.Task.Attempts
	switch c.Attempt.Step {
	case forge.StepImplement:
		return &forge.Implementation{Base: commit(1), Head: commit(10 + c.Attempt.Number), Commits: 1, Files: []string{"a.go"}}
	case forge.StepRebase:
		verify := &forge.VerifyReport{Passed: made > 1, Runs: []forge.CheckRun{{ID: "v1", Command: "go test ./...", Tree: commit(3), Passed: made > 1}}}
		if made <= 1 {
			verify.Command, verify.Output = "go test ./...", strings.Repeat("x", 20_000)+"FAIL: TestParser"
		}
		return &forge.Rebase{
			Base: commit(2), Head: commit(20 + made), Tree: commit(3), PatchID: commit(100 + made), Files: []string{"a.go", "b.go"}, Verify: verify,
		}
	case forge.StepReview:
		claim := forge.Claim{
			Number: 1, Text: c.Task.Required()[0], Met: made > 2, Confidence: 0.9, Note: "the parser is as it was",
			Evidence: []forge.Citation{{Kind: forge.CitationFile, Ref: "a.go:12", Quote: "return nil", Resolved: true}},
		}
		review := &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: []forge.Claim{claim}}
		if made <= 2 {
			review.Verdict, review.Issues = forge.VerdictRejected, []string{"the parser is not changed"}
		}
		return review
	default:
		return &forge.MergeResult{Outcome: forge.MergeDone, Commit: commit(99), Parent: commit(2), Tree: commit(3), PatchID: commit(103)}
	}
}

// done returns the path of an intent of ada that bob approved, and that is done.
func (w *world) done(key string) (path, plan string) {
	w.t.Helper()
	w.decides(quota.Limits{})
	w.works()
	path, plan = w.proposed(key)
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(w.t, "approve", http.StatusOK)
	wait.Until(w.t, "it is done", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "done" })
	return path, plan
}

// TestWorkIsShown reads what became of an intent, with a token that may only
// look: its plan, commits, reviews with evidence, what a command printed, what
// was rejected and by which rule, costs, and who approved through whom.
func TestWorkIsShown(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, plan := w.done("shown")
	shown := w.request("viewer", http.MethodGet, path, "")
	shown.wants(t, "show", http.StatusOK)
	var d document.Detail
	if err := json.Unmarshal([]byte(shown.text), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.PlanTasks) != 1 {
		t.Fatalf("the tasks are %+v", d.PlanTasks)
	}
	if one := d.PlanTasks[0]; one.Commit != commit(99) || one.PatchID != commit(103) || fmt.Sprint(one.Changed) != "[a.go b.go]" ||
		one.Attempts != 3 || one.Head == "" {
		t.Errorf("the task is %+v", one)
	}
	if len(d.Reviews) != 2 {
		t.Fatalf("the reviews are %+v", d.Reviews)
	}
	if r := d.Reviews[0]; r.Verdict != forge.VerdictRejected || r.Task != d.PlanTasks[0].ID || r.Issues[0] != "the parser is not changed" ||
		r.Claims[0].Note != "the parser is as it was" || r.Claims[0].Evidence[0].Ref != "a.go:12" || r.At.IsZero() {
		t.Errorf("the first review is %+v", r)
	}
	failed := d.Verified[0]
	if failed.Passed == nil || *failed.Passed || failed.Command != "go test ./..." || !strings.HasSuffix(failed.Output, "FAIL: TestParser") ||
		len(failed.Output) > 8000 || failed.PatchID != commit(101) || len(failed.Runs) != 1 {
		t.Errorf("the failed verify is %+v", failed)
	}
	if !strings.Contains(fmt.Sprint(d.Truncated), "verify[0].output 12016 8000 20016") {
		t.Errorf("what is cut is %+v", d.Truncated)
	}
	rules := ""
	for _, a := range d.Adjustments {
		rules += a.Rule + " "
	}
	if !strings.Contains(rules, "verify-failed") || !strings.Contains(rules, "rework") {
		t.Errorf("the rules are %s: %+v", rules, d.Adjustments)
	}
	total := 0.0
	for _, c := range d.Costs {
		total += c.CostUSD
		if c.Step == forge.StepImplement && (c.Attempts != 3 || c.InputTokens != 300 || c.Model != "small") {
			t.Errorf("the cost is %+v", c)
		}
	}
	if total != d.CostUSD || len(d.Steps) == 0 {
		t.Errorf("the costs are %v of %v in %d steps", total, d.CostUSD, len(d.Steps))
	}
	asked, approved := d.Decisions[0], d.Decisions[len(d.Decisions)-1]
	if asked.What != "submit" || asked.By != "ada" || asked.Via != "gateway" || approved.What != "approve" || approved.By != "bob" ||
		approved.Via != "gateway" || approved.Plan != plan {
		t.Errorf("the decisions are %+v", d.Decisions)
	}
	w.request("viewer", http.MethodGet, path+"?part=steps&after=2", "").wants(t, "a page", http.StatusOK, `"steps":[`, `"field":"steps","from":2`)
	w.request("viewer", http.MethodGet, path+"?part=stairs", "").wants(t, "no part", http.StatusBadRequest, `"field":"part"`, "it can be work, candidates")
	w.request("viewer", http.MethodGet, path+"?after=2", "").wants(t, "no part", http.StatusBadRequest, `"field":"after"`, "wants a part")
	w.request("viewer", http.MethodGet, path+"?part=steps&after=x", "").wants(t, "no number", http.StatusBadRequest, `"field":"after"`)
	w.request("banker", http.MethodGet, path, "").wants(t, "of another project", http.StatusForbidden)
	other := strings.Replace(path, "/shop/", "/bank/", 1)
	w.request("banker", http.MethodGet, other, "").wants(t, "its name elsewhere", http.StatusNotFound)
	if strings.Contains(shown.text, w.secrets["bob"]) || strings.Contains(shown.text, "token bob") {
		t.Error("the names of tokens, or tokens, are told")
	}
}

// TestWorkOnTheBus reads the same as another system, which asks runners by itself.
func TestWorkOnTheBus(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, _ := w.done("bus")
	key := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	ask := func(p document.Page) string {
		data, err := w.bus.Submissions.Show(wait.Context(t), key, "console", p)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	whole := w.request("viewer", http.MethodGet, path, "")
	if got := ask(document.Page{}); strings.TrimSpace(whole.text) != got {
		t.Errorf("on the bus: %s\nby HTTP: %s", got, whole.text)
	}
	if got := ask(document.Page{Part: "reviews", After: 1}); strings.Count(got, `"verdict"`) != 1 || strings.Contains(got, `"steps"`) {
		t.Errorf("a page is %s", got)
	}
	if got := ask(document.Page{Part: "x", After: -1}); !strings.Contains(got, "part: is \"x\"") {
		t.Errorf("a mistake is answered with %s", got)
	}
}

// TestFactsAreFollowed follows an intent by its changes alone: what failed with the end of
// its output, what a review found, the commit that was merged, and who approved through whom.
func TestFactsAreFollowed(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.done("followed")
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	told := map[changes.Kind]document.Change{}
	var order []string
	err := w.bus.Changes.Watch(ctx, "shop", 0, func() {}, func(p changes.Published) error {
		var ev changes.CloudEvent[document.Change]
		if err := json.Unmarshal(p.Event, &ev); err != nil {
			return err
		}
		told[p.Kind] = ev.Data
		order = append(order, string(p.Kind))
		if p.Kind == changes.Done {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "submitted planned waiting approved executing checks-failed changes-requested task-done done"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("the changes are %s\nwant %s", got, want)
	}
	if v := told[changes.ChecksFailed].Verify; v == nil || v.Command != "go test ./..." || !strings.HasSuffix(v.Output, "FAIL: TestParser") || v.At.IsZero() {
		t.Errorf("checks failed: %+v", told[changes.ChecksFailed].Cause)
	}
	if c := told[changes.ChecksFailed]; c.Task == nil || c.Task.Title != "one" || len(c.Truncated) == 0 || c.Via != "" {
		t.Errorf("checks failed: %+v", c)
	}
	if r := told[changes.ChangesRequested].Review; r == nil || r.Issues[0] != "the parser is not changed" || r.Claims[0].Evidence[0].Ref != "a.go:12" {
		t.Errorf("changes requested: %+v", told[changes.ChangesRequested].Cause)
	}
	if c := told[changes.KindTaskDone]; c.Task.Commit != commit(99) {
		t.Errorf("the task is done: %+v", c.Task)
	}
	if c := told[changes.Approved]; c.By != "bob" || c.Via != "gateway" {
		t.Errorf("approved: %+v", c.Cause)
	}
	if c := told[changes.Submitted]; c.By != "ada" || c.Via != "gateway" {
		t.Errorf("submitted: %+v", c.Cause)
	}
}

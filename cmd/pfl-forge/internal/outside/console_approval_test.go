package outside

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// oneLine is the change of an attempt of a task.
func oneLine(task forge.TaskID, attempt int) []byte {
	return fmt.Appendf(nil, "diff --git a/a.go b/a.go\nindex %s..%s 100644\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-old\n+attempt %d of %s\n",
		oid(1), oid(2), attempt, task)
}

// waits starts an installation with workers, and returns an intent of ada whose plan bob
// approved, and that waits for a person. Of its tasks, those with docs in their titles
// change no protected path and are never verified; all others are rejected once, and change
// a protected path. With a second reviewer, that one rejects whatever the first approves.
func waits(t *testing.T, second bool, titles ...string) (w *world, path string) {
	t.Helper()
	return waitsFor(t, second, oneLine, titles...)
}

// waitsFor is waits with the changes that a function returns.
func waitsFor(t *testing.T, second bool, change func(forge.TaskID, int) []byte, titles ...string) (w *world, path string) {
	t.Helper()
	return waitsUnder(t, second, func(*forge.Policy) {}, change, titles...)
}

// waitsUnder is waitsFor with another policy.
func waitsUnder(
	t *testing.T, second bool, with func(*forge.Policy), change func(forge.TaskID, int) []byte, titles ...string,
) (w *world, path string) {
	t.Helper()
	w = start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	policy := forge.DefaultPolicy()
	policy.ProtectedPaths, policy.MaxReviewRetries = []string{"a.go"}, 5
	if second {
		policy.ProtectedPaths, policy.Second = nil, forge.SecondReview{By: forge.Reviewer{Agent: "codex"}, When: []forge.Risk{forge.RiskHigh}}
	}
	with(&policy)
	w.analysis = func(*forge.Command) *forge.Analysis {
		found := &forge.Analysis{Risk: forge.RiskHigh, Policy: &policy}
		for i, title := range titles {
			found.Tasks = append(found.Tasks, forge.TaskPlan{Name: fmt.Sprintf("t%d", i), Title: title})
		}
		return found
	}
	w.decides(quota.Limits{})
	w.carries(func(ctx context.Context, c *forge.Command) (forge.Output, []byte) {
		made, docs, out := c.Task.Attempts, strings.Contains(c.Task.Title, "docs"), produced(c)
		number := int(c.Attempt.Task[len(c.Attempt.Task)-1]) * 100
		switch o := out.(type) {
		case *forge.Implementation:
			if docs && c.Attempt.Number > 1 {
				<-ctx.Done()
				return nil, nil
			}
			o.Head = commit(number + c.Attempt.Number)
			return o, change(c.Attempt.Task, c.Attempt.Number)
		case *forge.Rebase:
			o.Head, o.Files = commit(number+50+made), []string{map[bool]string{true: "docs.md", false: "a.go"}[docs]}
			o.Verify = &forge.VerifyReport{Passed: !docs, Runs: []forge.CheckRun{{ID: "v1", Command: "go test ./...", Tree: commit(3), Passed: !docs}}}
			return o, change(c.Attempt.Task, made)
		case *forge.Review:
			o.Verdict, o.Issues, o.Claims[0].Met = forge.VerdictApproved, nil, true
			if by := c.Review().Second; by != nil {
				o.By, o.Second = *by, true
			}
			if made == 1 && !second || o.Second {
				o.Verdict, o.Issues, o.Claims[0].Met = forge.VerdictRejected, []string{"it has a back door"}, false
			}
		case *forge.MergeResult:
			o.PatchID = patchid.Of(change(c.Attempt.Task, made))
		default:
		}
		return out, nil
	})
	path, plan := w.proposed("waits")
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "approve", http.StatusOK)
	most := 0
	for _, title := range titles {
		if !strings.Contains(title, "docs") {
			most++
		}
	}
	wait.Until(t, "its changes wait", func() bool {
		list, _ := w.request("ada", http.MethodGet, path, "").body["candidates"].([]any)
		return len(list) == most
	})
	return w, path
}

// approves reports whether a page has a form to approve.
func (p page) approves() bool { return strings.Contains(p.text, `name="decision" value="approve"`) }

// TestConsoleApprovesAChange: a change of protected paths is approved on the page that
// shows exactly it, which the inbox leads to. Another task, attempt or comparison has
// no button, and what is found out about a former attempt is not said of the newest.
func TestConsoleApprovesAChange(t *testing.T) {
	t.Parallel()
	w, path := waits(t, false, "harmless docs", "protected")
	id := path[strings.LastIndexByte(path, '/')+1:]
	patch := patchid.Of(oneLine(forge.TaskID(id+"-002"), 2))
	bob := w.signIn("bob")
	inbox := bob.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Look at the change and decide", consolePath(path))
	if inbox.approves() || strings.Contains(inbox.text, ", hash <code>") {
		t.Errorf("the inbox approves what it does not show:\n%s", inbox.text)
	}
	for query, why := range map[string]string{
		"?task=" + id + "-001":                                    "The task that is shown here does not wait for it.",
		"?task=" + id + "-002&step=implement&attempt=1":           "The change below is " + patchid.Of(oneLine(forge.TaskID(id+"-002"), 1))[:12],
		"?task=" + id + "-002&step=implement&attempt=2&since=1":   "Below is a comparison",
		"?task=" + id + "-002&step=implement&attempt=99":          "Its change cannot be shown.",
		"?task=" + id + "-002&step=implement&attempt=2&after=0.0": "",
	} {
		p := bob.get(consolePath(path) + query)
		p.wants(t, query, http.StatusOK, why, "One change waits for a person", "protected", patch)
		if p.approves() != (why == "") {
			t.Errorf("%s approves: %t", query, p.approves())
		}
		if strings.Contains(p.text, "no protected paths") {
			t.Errorf("%s says that it changes no protected paths", query)
		}
	}
	p := bob.get(consolePath(path))
	p.wants(t, "the page", http.StatusOK, "attempt 2 of "+id+"-002", "changes protected paths", "verified</b>", "1 of 1 requirement met",
		"it changes what only a person may approve (policy.protected_paths): a.go")
	hash, _ := w.request("ada", http.MethodGet, path, "").body["plan"].(string)
	p.wants(t, "the page", http.StatusOK, "An approval is bound to the hash <code>"+hash+"</code>, which is made of this patch",
		"Approve this change, hash <code>"+hash+"</code></button>")
	action, approve := p.form(t, path, "approve")
	if done := bob.do(http.MethodPost, action, approve); done.status != http.StatusSeeOther {
		t.Fatalf("approved: %d\n%s", done.status, done.text)
	}
	wait.Until(t, "it is merged", func() bool {
		tasks := w.request("ada", http.MethodGet, path, "").body["task_list"].([]any)
		return tasks[1].(map[string]any)["status"] == "done"
	})
	if left := w.request("ada", http.MethodGet, path, "").body["candidates"]; left != nil {
		t.Errorf("there wait %v", left)
	}
}

// TestConsoleAsksForChangesOfAChange: of several changes that wait, the one is made again
// on whose page a person asks for that, with their words, also where it cannot be approved.
// It waits again with the others; whoever has seen it as it was approves nothing.
func TestConsoleAsksForChangesOfAChange(t *testing.T) {
	t.Parallel()
	w, path := waits(t, false, "one", "two")
	id := path[strings.LastIndexByte(path, '/')+1:]
	bob := w.signIn("bob")
	_, stale := bob.get(consolePath(path)).form(t, path, "approve")
	p := bob.get(consolePath(path) + "?task=" + id + "-002")
	action, changes := p.form(t, path, "changes")
	p.wants(t, "the page", http.StatusOK, "Only the change of <code>"+id+"-002</code> is made again")
	if changes.Get("task") != id+"-002" {
		t.Fatalf("asked are changes of %q", changes.Get("task"))
	}
	changes.Set("text", "Keep the name.")
	bob.do(http.MethodPost, action, changes).wants(t, "ask for changes", http.StatusSeeOther)
	wait.Until(t, "it waits again", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		list, _ := shown.body["candidates"].([]any)
		return len(list) == 2 && strings.Contains(shown.text, patchid.Of(oneLine(forge.TaskID(id+"-002"), 3)))
	})
	shown := w.request("ada", http.MethodGet, path, "")
	shown.wants(t, "the other one", http.StatusOK, patchid.Of(oneLine(forge.TaskID(id+"-001"), 2)), `"reason":"Keep the name."`, `"task":"`+id+`-002"`)
	bob.do(http.MethodPost, action, stale).wants(t, "a stale approval", http.StatusConflict, "Not done: it has changed since you saw it", "request changes")
}

// TestConsoleApprovesChanges: of several that one approval is of, every page
// that approves names all, with the patch of each.
func TestConsoleApprovesChanges(t *testing.T) {
	t.Parallel()
	w, path := waits(t, false, "first", "other")
	id := path[strings.LastIndexByte(path, '/')+1:]
	bob := w.signIn("bob")
	for _, query := range []string{"", "?task=" + id + "-002"} {
		p := bob.get(consolePath(path) + query)
		p.wants(t, query, http.StatusOK, "2 changes wait for a person, and are approved together", "Approve these 2 changes",
			patchid.Of(oneLine(forge.TaskID(id+"-001"), 2)), patchid.Of(oneLine(forge.TaskID(id+"-002"), 2)))
	}
	action, approve := bob.get(consolePath(path)).form(t, path, "approve")
	if done := bob.do(http.MethodPost, action, approve); done.status != http.StatusSeeOther {
		t.Fatalf("approved: %d\n%s", done.status, done.text)
	}
	wait.Until(t, "both are merged", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "done" })
}

// TestArbitrationTakesAnApprover: the answer by which a change is approved that its
// reviewers disagree about takes the role of an approver, by HTTP and in the console,
// which has it on the page of the change alone. Who may answer can reject it.
func TestArbitrationTakesAnApprover(t *testing.T) {
	t.Parallel()
	w, path := waits(t, true, "disputed")
	list := map[string]string{"rex": "person: rex, projects: {shop: [requester]}"}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "rex is known", func() bool { return w.signInAs("rex") == http.StatusSeeOther })
	shown := w.request("rex", http.MethodGet, path, "")
	question := shown.body["questions"].([]any)[0].(map[string]any)["question"].(string)
	for _, answer := range []string{"approve", "APPROVE", " Approve\\n"} {
		w.request("rex", http.MethodPost, path+"/answer", fmt.Sprintf(`{"index": 0, "question": %q, "answer": "%s"}`, question, answer)).
			wants(t, answer, http.StatusForbidden, "may not approve")
	}
	rex, bob := w.signIn("rex"), w.signIn("bob")
	inbox := rex.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Look at the change and decide")
	if strings.Contains(inbox.text, `value="approve"`) {
		t.Errorf("the inbox approves:\n%s", inbox.text)
	}
	p := rex.get(consolePath(path))
	p.wants(t, "their page", http.StatusOK, "Approving it takes the role approver.", "Reject this change")
	if strings.Contains(p.text, `name="verdict" value="changes"`) {
		t.Errorf("they can ask for changes:\n%s", p.text)
	}
	action, answer := p.form(t, path, "answer")
	if strings.Contains(p.text, `value="approve"`) {
		t.Errorf("they can approve:\n%s", p.text)
	}
	for _, form := range []url.Values{{"verdict": {"approve"}}, {"answer": {"", "approve"}}} {
		for name, values := range answer {
			if form[name] == nil {
				form[name] = values
			}
		}
		rex.do(http.MethodPost, action, form).wants(t, "they approve", http.StatusForbidden)
	}
	if now := w.request("ada", http.MethodGet, path, "").body["waiting"]; now != "clarification" {
		t.Fatalf("it waits for %v", now)
	}
	former := bob.get(consolePath(path) + "?step=implement&attempt=1")
	former.wants(t, "a former attempt", http.StatusOK, "It cannot be approved on this page.")
	p = bob.get(consolePath(path))
	p.wants(t, "the page", http.StatusOK, "attempt 2 of", `name="verdict" value="approve"`)
	action, answer = p.form(t, path, "answer")
	answer["verdict"] = []string{"approve"}
	bob.do(http.MethodPost, action, answer).wants(t, "an approver", http.StatusSeeOther)
	wait.Until(t, "it is merged", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "done" })
}

// TestConsoleAsksForChangesOfADisputedChange: a person who is asked to decide
// between two reviewers may ask for changes instead, in words. The question is
// gone with the change that it was about, and comes again about the next one.
func TestConsoleAsksForChangesOfADisputedChange(t *testing.T) {
	t.Parallel()
	w, path := waits(t, true, "one")
	bob := w.signIn("bob")
	p := bob.get(consolePath(path))
	p.wants(t, "the page", http.StatusOK, "attempt 2 of", "asking for changes spends none")
	head := w.request("ada", http.MethodGet, path, "").body["candidates"].([]any)[0].(map[string]any)["head"].(string)
	action, answer := p.form(t, path, "answer")
	answer["verdict"] = []string{"changes"}
	bob.do(http.MethodPost, action, answer).wants(t, "no words", http.StatusBadRequest, "say it in words")
	answer["answer"] = []string{"Keep\r\nthe name."}
	bob.do(http.MethodPost, action, answer).wants(t, "ask for changes", http.StatusSeeOther)
	wait.Until(t, "they disagree about another change", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		list, _ := shown.body["candidates"].([]any)
		return len(list) == 1 && list[0].(map[string]any)["head"] != head && shown.body["waiting"] == "clarification"
	})
	shown := w.request("ada", http.MethodGet, path, "")
	shown.wants(t, "shown", http.StatusOK, `"what":"request_changes","by":"bob"`, `"plan":"`+head+`"`, `"reason":"Keep\nthe name."`, "attempt")
	if open := shown.body["questions"].([]any); len(open) != 1 {
		t.Errorf("asked are %v", open)
	}
}

// TestConsoleMarksARefusedPatch: while a change is made again because a person asked for that,
// the page does not show the verdict on the refused patch as one that counts; nor does it before.
func TestConsoleMarksARefusedPatch(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	w, path := waitsFor(t, false, func(task forge.TaskID, attempt int) []byte {
		if attempt > 2 {
			<-held
		}
		return oneLine(task, attempt)
	}, "one")
	t.Cleanup(func() { close(held) }) // before the workers are waited for
	bob := w.signIn("bob")
	p := bob.get(consolePath(path))
	p.wants(t, "the page", http.StatusOK, `<ul class="verdict" aria`, "verified</b>", "approved</b>")
	action, changes := p.form(t, path, "changes")
	changes.Set("text", "Keep the name.")
	bob.do(http.MethodPost, action, changes).wants(t, "ask for changes", http.StatusSeeOther)
	patch := patchid.Of(oneLine(forge.TaskID(path[strings.LastIndexByte(path, '/')+1:]+"-001"), 2))
	bob.get(consolePath(path)).wants(t, "meanwhile", http.StatusOK, `<ul class="verdict past" aria`, "of an earlier patch, <code title=\""+patch,
		"Keep the name.")
}

package outside

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestConsoleTellsWhoElse: whoever has a decision before them is told who else may take it, by
// the roles and by the project's approvers, on both pages; whoever has none is told of no person.
func TestConsoleTellsWhoElse(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	file := "policy: {approvals: {not_requester: false}}\n"
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if strings.Contains(c.Intent.Body, "ask") && len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{{Question: "Which?"}}}
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}, Policy: policied(t, file, commit(1))}
	}
	list := map[string]string{
		"zoe": "person: zoe, projects: {shop: [approver]}", "again": "person: zoe, projects: {shop: [approver, viewer]}",
		"late": "person: late, projects: {shop: [approver]}, expires: 2020-01-01T00:00:00Z",
	}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "zoe is known", func() bool { return w.knows("zoe") })
	const says = "Who else may decide: <bdi>"
	path, _ := w.proposed("first")
	bob, ada, vic := w.signIn("bob"), w.signIn("ada"), w.signIn("viewer")
	for _, address := range []string{"/console/inbox", consolePath(path)} {
		bob.get(address).wants(t, address+" of bob", http.StatusOK, says+"ada, zoe</bdi>")
		ada.get(address).wants(t, address+" of ada", http.StatusOK, says+"bob, zoe</bdi>")
		if p := vic.get(address); p.status != http.StatusOK || strings.Contains(p.text, "Who else may decide") || strings.Contains(p.text, "zoe") {
			t.Errorf("a viewer is told of people:\n%s", p.text)
		}
	}
	file = "policy: {approvers: [bob, Zoe], approvals: {not_requester: false}}\n" // zoe is no Zoe
	path, _ = w.proposed("second")
	bob.get(consolePath(path)).wants(t, "with approvers", http.StatusOK, says+"nobody else in this gateway&#39;s file of tokens</bdi>")
	asked := w.request("ada", http.MethodPost, intents, `{"title": "Ask", "body": "ask"}`).header.Get("Location")
	wait.Until(t, "it asks", func() bool { return w.request("ada", http.MethodGet, asked, "").body["waiting"] == "clarification" })
	ada.get(consolePath(asked)).wants(t, "a question", http.StatusOK, says+"bob, zoe</bdi>")
	inbox := bob.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Nothing expires: it waits until a person decides.", "last change")
}

// TestConsoleOffersNoApprovalToARequester: who asked for changes of a plan, or of a change
// whose reviewers disagree, became a requester. Where the policy bars these, their page
// does not offer the approval which the rules refuse, and says why; another person's does.
func TestConsoleOffersNoApprovalToARequester(t *testing.T) {
	t.Parallel()
	const why = "You asked for it, so another person has to approve it."
	policy := policied(t, "policy: {approvals: {not_requester: true}}\n", commit(1))
	policy.Approvals.NotRequester = true
	bars := func(p *forge.Policy) { p.Approvals.NotRequester, p.Settings = true, policy.Settings }
	w, path := waitsUnder(t, true, bars, oneLine, "one")
	list := map[string]string{"zoe": "person: zoe, projects: {shop: [approver]}"}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "zoe is known", func() bool { return w.knows("zoe") })
	// Bob approved the plan, so his words are refused while that counts.
	bob, zoe := w.signIn("bob"), w.signIn("zoe")
	const approves = `name="verdict" value="approve"`
	p := zoe.get(consolePath(path))
	p.wants(t, "before", http.StatusOK, approves)
	head := w.request("ada", http.MethodGet, path, "").body["candidates"].([]any)[0].(map[string]any)["head"].(string)
	action, answer := p.form(t, path, "answer")
	answer["verdict"], answer["answer"] = []string{"changes"}, []string{"Keep the name."}
	zoe.do(http.MethodPost, action, answer).wants(t, "ask for changes", http.StatusSeeOther)
	wait.Until(t, "they disagree about another change", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		list, _ := shown.body["candidates"].([]any)
		return len(list) == 1 && list[0].(map[string]any)["head"] != head && shown.body["waiting"] == "clarification"
	})
	p = zoe.get(consolePath(path))
	p.wants(t, "a dispute", http.StatusOK, why, "Reject this change")
	if strings.Contains(p.text, approves) {
		t.Errorf("it can be approved:\n%s", p.text)
	}
	action, answer = p.form(t, path, "answer")
	answer["verdict"] = []string{"approve"}
	zoe.do(http.MethodPost, action, answer).wants(t, "the rules", http.StatusConflict, "may not approve what they asked for")
	bob.get(consolePath(path)).wants(t, "another person", http.StatusOK, approves)

	w = withConsole(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		title := "as planned"
		if c.Wish != nil {
			title = "as bob wants"
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Policy: policy, Tasks: []forge.TaskPlan{{Name: "one", Title: title}}}
	}
	path, plan := w.proposed("planned")
	bob = w.signIn("bob")
	p = bob.get(consolePath(path))
	action, answer = p.form(t, path, "changes")
	answer.Set("text", "Differently.")
	if p.wants(t, "before", http.StatusOK, "and may then not approve it: another person has to"); !p.approves() {
		t.Error("who did not ask for it cannot approve it")
	}
	bob.do(http.MethodPost, action, answer).wants(t, "ask for changes", http.StatusSeeOther)
	wait.Until(t, "another plan waits", func() bool {
		now, _ := w.request("ada", http.MethodGet, path, "").body["plan"].(string)
		return now != plan && now != ""
	})
	for _, address := range []string{consolePath(path), "/console/inbox"} {
		if p = bob.get(address); p.approves() || !strings.Contains(p.text, why) {
			t.Errorf("%s: approval is offered, or it is not said why not:\n%s", address, p.text)
		}
	}
}

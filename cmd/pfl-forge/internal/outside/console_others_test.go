package outside

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestConsoleTellsWhoElse: whoever has a decision before them is told who else may take it, by the roles and by the project's approvers, on both pages; whoever
// has none is told of no person.
func TestConsoleTellsWhoElse(t *testing.T) {
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

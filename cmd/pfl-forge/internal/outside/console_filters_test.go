package outside

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestConsoleFilters: each filter of the board selects by its address alone,
// together with all others, and links to states keep it.
func TestConsoleFilters(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: c.Intent.Title}}}
	}
	list := map[string]string{
		"both": "person: ada, projects: {shop: [requester, approver], bank: [requester, approver]}", "rex": "person: rex, projects: {shop: [requester]}",
	}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "they are known", func() bool { return w.knows("both") && w.knows("rex") })
	for _, one := range []struct{ who, project, wish, status string }{
		{"both", "shop", `{"title": "Alpha", "body": "a", "type": "fix", "labels": ["ui", "urgent"], "risk": "high", "agent": "codex"}`, "proposed"},
		{"rex", "shop", `{"title": "Beta", "body": "b", "type": "docs", "labels": ["ui"]}`, "executing"},
		{"both", "bank", `{"title": "Gamma", "body": "c", "type": "fix", "risk": "high"}`, "proposed"},
	} {
		made := w.request(one.who, http.MethodPost, "/api/v1/projects/"+one.project+"/intents", one.wish)
		made.wants(t, one.wish, http.StatusCreated)
		wait.Until(t, "it is "+one.status, func() bool {
			shown := w.request("both", http.MethodGet, made.header.Get("Location"), "").body
			return shown["status"] == one.status && (shown["waiting"] == "approval") == (one.status == "proposed")
		})
	}
	ada := w.signIn("both")
	for query, want := range map[string]string{
		"":                          "Alpha Beta Gamma",
		"state=waits+for+a+person":  "Alpha Gamma",
		"state=in+progress":         "Beta",
		"status=executing":          "Beta",
		"waiting=approval":          "Alpha Gamma",
		"type=fix":                  "Alpha Gamma",
		"type=fix&type=docs":        "Alpha Beta Gamma",
		"label=ui":                  "Alpha Beta",
		"label=ui+urgent":           "Alpha",
		"requester=rex":             "Beta",
		"project=bank":              "Gamma",
		"project=bank&project=shop": "Alpha Beta Gamma",
		"risk=high":                 "Alpha Gamma",
		"risk=low":                  "Beta",
		"agent=codex":               "Alpha",
		"agent=claude":              "",
		"since=2020-01-01":          "Alpha Beta Gamma",
		"since=2100-01-01":          "",
		"search=ALPH":               "Alpha",
		"search=rex":                "Beta",
		"type=fix&project=shop&risk=high&label=ui&agent=codex&requester=ada&since=2020-01-01&search=alpha&state=waits+for+a+person": "Alpha",
		"type=fix&label=ui&requester=rex": "",
	} {
		p := ada.get("/console/board?" + query)
		p.wants(t, query, http.StatusOK)
		_, rows, _ := strings.Cut(p.text, `id="rows"`)
		var got []string
		for _, title := range []string{"Alpha", "Beta", "Gamma"} {
			if strings.Contains(rows, "<bdi>"+title+"</bdi>") {
				got = append(got, title)
			}
		}
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		if (want == "") != strings.Contains(rows, "No intent is like this") {
			t.Errorf("%s: the rows are %s", query, rows)
		}
	}
	ada.get("/console/board?agent=codex&label=ui").wants(t, "links and fields", http.StatusOK, `href="/console/board?agent=codex&amp;label=ui&amp;state=done"`,
		`name="agent" value="codex"`, `name="label" value="ui"`)
	w.request("both", http.MethodGet, intents+"?agent=codex", "").wants(t, "by the API", http.StatusOK, `"title":"Alpha"`)
	if text := w.request("both", http.MethodGet, intents+"?agent=codex", "").text; strings.Contains(text, "Beta") {
		t.Errorf("by the API it is %s", text)
	}
}

// TestBoardByAgent: an agent that was called for an intent selects it, whatever the intent names.
func TestBoardByAgent(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.works()
	path, plan := w.proposed("called")
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "approve", http.StatusOK)
	wait.Until(t, "it is done", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "done" })
	vic := w.signIn("viewer")
	vic.get("/console/board?agent=claude").wants(t, "the one that was called", http.StatusOK, "<bdi>Risky</bdi>")
	vic.get("/console/board?agent=codex").wants(t, "another one", http.StatusOK, "No intent is like this")
}

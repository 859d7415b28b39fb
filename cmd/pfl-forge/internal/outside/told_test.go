package outside

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestWhatRanIsTold: a token that may only look is told the line of each command that ran, as its
// worker reported it, by show and as a whole. Of the settings, which hold secrets here, nothing is
// told by either: what did not run is shown by the address of settings alone, as far as that does.
func TestWhatRanIsTold(t *testing.T) {
	t.Parallel()
	const passed, failed = "FOO='a b' make lint", "go vet ./... && go test ./... | tee log"
	w := start(t, gateway.Settings{})
	policy := policied(t, settingsFile, strings.Repeat("1", 40))
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Policy: policy, Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	w.decides(quota.Limits{})
	w.carries(func(_ context.Context, c *forge.Command) (forge.Output, []byte) {
		out := produced(c)
		if rb := forge.As[*forge.Rebase](out); rb != nil {
			rb.Verify = &forge.VerifyReport{Command: failed, Output: "it broke", Runs: []forge.CheckRun{
				{ID: "v1", Command: passed, Tree: rb.Tree, Passed: true}, {ID: "v2", Command: failed, Tree: rb.Tree, ExitCode: 1, Output: "it broke"},
			}}
		}
		if c.Attempt.Step == forge.StepImplement {
			return out, changed(c.Attempt.Number)
		}
		return out, nil
	})
	made := w.request("ada", http.MethodPost, intents, `{"title": "Plain", "body": "Do it."}`, "Idempotency-Key", "ran")
	made.wants(t, "submit", http.StatusCreated)
	path := made.header.Get("Location")
	var d document.Detail
	wait.Until(t, "a command has failed", func() bool {
		shown := w.request("viewer", http.MethodGet, path, "")
		w.hides("show", shown.text)
		return json.Unmarshal([]byte(shown.text), &d) == nil && len(d.Verified) > 0
	})
	if v := d.Verified[0]; v.Command != failed || len(v.Runs) != 2 || v.Runs[0].Command != passed || v.Runs[1].Output != "it broke" {
		t.Errorf("it shows %+v", v)
	}
	got := w.request("viewer", http.MethodGet, path+"/whole", "")
	all, err := whole.ParseIntent([]byte(got.text))
	if err != nil || len(all.Work.Verified) == 0 || all.Work.Verified[0].Command != failed {
		t.Fatalf("whole it is %s, %v", got.text, err)
	}
	told := got.text
	for _, record := range all.Records {
		data, err := base64.StdEncoding.DecodeString(record)
		if err != nil {
			t.Fatal(err)
		}
		told += string(data)
	}
	w.hides("whole", told)
	if !strings.Contains(told, failed) {
		t.Error("the records do not have the command that failed")
	}
	if strings.Contains(told, "DB_PASSWORD") {
		t.Error("a command of the settings is told that did not run")
	}
	s := w.settingsOf("viewer")
	if got := setting(&s, "verify").Value; !strings.HasPrefix(got, "DB_PASSWORD=…") {
		t.Errorf("the settings have %q", got)
	}
}

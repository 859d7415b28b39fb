package schematest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
)

// The files that hold a value in every field fit their schemas.
func TestWholeFiles(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, ".forge"), os.DirFS("../testdata/files")); err != nil {
		t.Fatal(err)
	}
	w, err := forgedir.Open(root, forgedir.Options{Project: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.Init(); err != nil {
		t.Fatal(err)
	}
	write(t, root, ".forge/intent-drafts/imported/a.md", strings.ReplaceAll(forgedir.ExampleDraft, "\n# ", "\n"))
	lines(t, w)
	write(t, root, ".forge/problems.json", `[{"path": ".forge/intents/refused.yaml", "line": 2, "field": "title", "reason": "is empty"}]`)
	write(t, root, ".forge/intents/refused.yaml", "titel: x\n")
	want := map[string]int{
		"intent": 2, "task": 2, "review": 1, "observations": 1, "history": 1, "state": 1, "problems": 1, "draft": 1, "pfl-forge": 1,
		"goal-history": 1, "goal-knowledge": 1,
	}
	if diff := cmp.Diff(want, schematest.Check(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	var settings strings.Builder
	for l := range strings.Lines(forgedir.ConfigTemplate) {
		if !strings.HasPrefix(l, "##") && !strings.HasPrefix(l, "# ") {
			settings.WriteString(strings.TrimPrefix(l, "#"))
		}
	}
	write(t, root, "pfl-forge.yaml", settings.String())
	schematest.Check(t, root)
}

// lines writes the files of a goal, first with nothing in every field and then with
// something.
func lines(t *testing.T, w *forgedir.Dir) {
	t.Helper()
	v := forge.View{Intent: forge.Intent{ID: "x", Source: forge.SourceHuman, Status: forge.StatusExecuting}, Seq: 1, Goal: &forge.GoalView{
		Iterations: []forge.Iteration{
			{Summary: &forge.ExecutionSummary{Iteration: 1, Result: forge.ExecutionError}},
			{Summary: &forge.ExecutionSummary{
				Iteration: 2, Result: forge.ExecutionSuccess, Artifacts: []string{"a"},
				Metadata: forge.SummaryMetadata{ToolsUsed: []string{"Read"}, ErrorType: "timeout", TokensUsed: 5},
				Next:     &forge.NextAction{SuggestedAction: "go on", Blockers: []string{"b"}, PartialProgress: "half"},
			}},
		},
		Knowledge: []forge.Knowledge{
			{ID: "x/k1", Type: forge.KnowledgeLesson},
			{ID: "x/k2", Type: forge.KnowledgePattern, Confidence: forge.ConfidenceHigh, ExampleFile: "a.go:1"},
		},
	}}
	if problems, err := w.Write(v); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRefused(t *testing.T) {
	schemas := schematest.Compile(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../testdata/files", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const history = `{"type":"summary","iteration":1,"approach":"","result":"failure","reason":"","artifacts":[],"metadata":` +
		`{"tools_used":[],"files_modified":[],"error_type":null,"tokens_used":0,"strategy_tags":[]},"next":null,` +
		`"timestamp":"2026-01-23T10:00:00Z","goal":"x"}`
	for _, tt := range []struct{ kind, text, old, to string }{
		{"intent", read("intents/fix-login.yaml"), "title:", "titel: x\ntitle:"},
		{"intent", read("intents/fix-login.yaml"), "risk: med", "risk: medium"},
		{"intent", read("intents/fix-login.yaml"), "revision: 7", ""},
		{"intent", read("intents/fix-login.yaml"), "created_at: 2026-01-02T03:04:05Z", "created_at: today"},
		{"intent", read("intents/fix-login.yaml"), "    answer: null", "    answer: null\n    why: x"},
		{"task", read("work/fix-login-001.yaml"), "status: pending", "status: waiting"},
		{"task", read("work/fix-login-001.yaml"), "id: fix-login-001", "id: Fix"},
		{"review", read("reviews/fix-login-001-1.yaml"), "verdict: rejected", "verdict: maybe"},
		{"history", read("knowledge/history/fix-login-1.yaml"), "duration: 1.5s", "duration: long"},
		{"observations", read("observations.yaml"), "type: file", "type: folder"},
		{"state", read("state.yaml"), "status: proposed", "status: open"},
		{"goal-history", history, `"summary"`, `"knowledge"`},
		{"goal-history", history, `"result":"failure"`, `"result":"maybe"`},
		{"goal-history", history, `"goal":`, `"gaol":`},
		{"goal-knowledge", `{"type":"lesson","category":"","content":"","example_file":null,"source_task":"","confidence":"low",` +
			`"applied_count":0,"created_at":"2026-01-23T10:00:00Z","id":"x/k1"}`, `"lesson"`, `"hint"`},
		{"intent", read("intents/fix-login.yaml"), "max_iterations: 7", "max_iterations: 101"},
		{"draft", "criteria: [x]\ngoal: {history: .e8/x.jsonl}\n", ".e8/", "e8/"},
		{"draft", "risk: low\ntitle: 2026\nwith: {N: 1, Y: no}\nlabels:\n", "risk", "rsk"},
		{"pfl-forge", "recipes: {x: {run: y}}\n", "run", "rum"},
		{"pfl-forge", "policy: {network: full}\n", "full", "none"},
		{"pfl-forge", "timeouts: {analyze: 10m}\n", "10m", "10"},
	} {
		if err := schematest.Validate(schemas[tt.kind], []byte(tt.text)); err != nil {
			t.Errorf("%s: %v\n%s", tt.kind, err, tt.text)
		}
		bad := strings.Replace(tt.text, tt.old, tt.to, 1)
		if err := schematest.Validate(schemas[tt.kind], []byte(bad)); err == nil {
			t.Errorf("%s with %q is not refused", tt.kind, tt.to)
		}
	}
}

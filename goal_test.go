package forge_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

func TestGoalOptionsAreChecked(t *testing.T) {
	many := make([]string, forge.MaxListLength+1)
	for _, tt := range []struct {
		change func(in *forge.Intent)
		want   string
	}{
		{func(*forge.Intent) {}, ""},
		{func(in *forge.Intent) {
			*in.Goal = forge.GoalOptions{
				MaxIterations: 100, HistoryContext: 20, Model: "clever[1m]", Tools: []string{"Read", "Bash(go test:*)"},
				HistoryFile: ".e8/a/b.jsonl", LogDir: ".e8/x", SystemPrompt: "Be kind.",
			}
		}, ""},
		{func(in *forge.Intent) { in.Criteria = nil }, "goal: "},
		{func(in *forge.Intent) { in.Criteria = []string{"a", " "} }, "criteria[1]: "},
		{func(in *forge.Intent) { in.Criteria = []string{strings.Repeat("x", forge.MaxCriterion+1)} }, "criteria[0]: "},
		{func(in *forge.Intent) { in.Criteria = make([]string, forge.MaxCriteria+1) }, "criteria: "},
		{func(in *forge.Intent) { in.Goal.MaxIterations = 101 }, "goal.max_iterations: is 101"},
		{func(in *forge.Intent) { in.Goal.HistoryContext = -1 }, "goal.history_context: is -1"},
		{func(in *forge.Intent) { in.Goal.Model = "--settings" }, "goal.model: "},
		{func(in *forge.Intent) { in.Goal.Model = "a b" }, "goal.model: "},
		{func(in *forge.Intent) { in.Goal.Tools = []string{"Read", "Read(x),WebFetch"} }, "goal.tools[1]: "},
		{func(in *forge.Intent) { in.Goal.Tools = []string{"--settings"} }, "goal.tools[0]: "},
		{func(in *forge.Intent) { in.Goal.Tools = many }, "goal.tools: has 101"},
		{func(in *forge.Intent) { in.Goal.JudgePrompt, in.Source = "x", forge.SourceSystem }, "goal.judge_prompt: "},
		{func(in *forge.Intent) { in.Goal.HistoryFile = "history.jsonl" }, "goal.history_file: "},
		{func(in *forge.Intent) { in.Goal.KnowledgeFile = ".e8/../x" }, "goal.knowledge_file: "},
		{func(in *forge.Intent) { in.Goal.LogDir = ".e8/" }, "goal.log_dir: "},
		{func(in *forge.Intent) { in.Goal.KnowledgeFile = ".e8/history.jsonl" }, "goal.knowledge_file: "},
		{func(in *forge.Intent) { in.Goal.HistoryFile, in.Goal.KnowledgeFile = ".e8/a/b", ".e8/a" }, "goal.knowledge_file: "},
		{func(in *forge.Intent) { in.Goal.HistoryFile, in.Goal.LogDir = ".e8/a", ".e8/a/b" }, "goal.log_dir: "},
		{func(in *forge.Intent) { in.Goal.LogDir = ".e8/knowledge.jsonl" }, "goal.log_dir: "},
		{func(in *forge.Intent) { in.Goal.LogDir, in.Goal.HistoryFile = ".e8/a", ".e8/a/history.jsonl" }, ""},
	} {
		in := forge.Intent{
			ID: "a", Project: "p", Settings: forge.Settings{
				Title:    "t",
				Body:     "b",
				Criteria: []string{"it holds"},
				Goal:     &forge.GoalOptions{},
			}, Source: forge.SourceHuman,
		}
		tt.change(&in)
		got := ""
		if e := in.Validate(); e != nil {
			got = e.Error()
		}
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Words must not look like a check: a person who approves the plan takes them
// for one, and a model decides.
func TestWordsThatLookLikeACheck(t *testing.T) {
	for _, source := range []forge.Source{forge.SourceHuman, forge.SourceSystem} {
		for text, refused := range map[string]bool{
			"check tests passes": true, " Check  tests passes.": true, "`go test ./...` exits with 0": true,
			"`a\nb` exits with 2, and its output matches `x`": true, "The check of the tests passes": false, "`make` exits with an error": false,
		} {
			in := forge.Intent{ID: "a", Project: "p", Source: source, Settings: forge.Settings{Title: "t", Body: "b", Criteria: []string{text}}}
			if e := in.Validate(); (e != nil) != refused {
				t.Errorf("%q: %+v", text, e)
			}
		}
	}
}

// Criteria that nobody would judge are refused, never shown and ignored.
func TestCriteriaThatNobodyJudges(t *testing.T) {
	for _, tt := range []struct {
		set  forge.Settings
		want string // the beginning of the reason; empty if they are judged
	}{
		{forge.Settings{}, ""},
		{forge.Settings{Type: "fix"}, ""},
		{forge.Settings{Recipe: "format"}, "would not be judged: with a recipe"},
		{forge.Settings{Type: forge.TypeAudit}, "would not be judged: an intent of type \"audit\""},
		{forge.Settings{Type: forge.TypeSkillExtraction}, "would not be judged: an intent of type \"skill_extraction\""},
	} {
		in := forge.Intent{ID: "a", Project: "p", Source: forge.SourceHuman, Settings: tt.set}
		in.Title, in.Body, in.Criteria = "A", "Do it.", []string{"It holds."}
		e := in.Validate()
		switch {
		case tt.want == "" && e != nil:
			t.Errorf("%+v: %+v", tt.set, e)
		case tt.want != "" && (e == nil || e.Field != "criteria" || !strings.HasPrefix(e.Reason, tt.want)):
			t.Errorf("%+v: %+v", tt.set, e)
		}
	}
}

package forgedir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

const (
	historyFile   = ".e8/history.jsonl"
	knowledgeFile = ".e8/knowledge.jsonl"
)

// goalAt is when a goal's iteration was summed up.
func goalAt(n int) time.Time { return time.Date(2026, 1, 23, 10, 0, n, 0, time.UTC) }

// goalView is a goal that found something out in each of its iterations.
func goalView(id forge.IntentID, iterations int) forge.View {
	v := sample()
	v.Intent.ID, v.Intent.Criteria, v.Summary.Key.Intent = id, []string{"it works"}, id
	v.Tasks = []forge.Task{{ID: forge.TaskID(id + "-001"), IntentID: id, Title: "Do it", Aims: forge.Aims{Criteria: v.Intent.Criteria}}}
	v.Reviews, v.History, v.Observations = nil, nil, nil
	v.Goal = &forge.GoalView{}
	for range iterations {
		iterate(&v)
	}
	return v
}

func iterate(v *forge.View) {
	n := len(v.Goal.Iterations) + 1
	v.Seq++
	v.Goal.Iterations = append(slices.Clone(v.Goal.Iterations), forge.Iteration{Number: n, Attempt: n, Summary: &forge.ExecutionSummary{
		Iteration: n, Approach: "try <it>", Result: forge.ExecutionFailure, Reason: "it \"fails\"", At: goalAt(n),
	}})
	v.Goal.Knowledge = append(slices.Clone(v.Goal.Knowledge), forge.Knowledge{
		ID: fmt.Sprintf("%s/k%d", v.Intent.ID, n), Type: forge.KnowledgeLesson, Category: "testing", Content: `a "applied_count": 7 text`,
		SourceTask: "Do it", Confidence: forge.ConfidenceHigh, CreatedAt: goalAt(n),
	})
}

// shared is a path below the repository's root.
func (d *fixture) shared(rel string) string { return filepath.Join(d.root, filepath.FromSlash(rel)) }

func (d *fixture) goalText(rel string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.shared(rel))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *fixture) goalPut(rel, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.shared(rel)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	writeText(d.t, d.shared(rel), text)
}

func (d *fixture) transcript(name, text string) {
	d.t.Helper()
	d.goalPut(layout.Dir+"/logs/"+name, text)
}

// writeGoals goes round until all goals are written.
func (d *fixture) writeGoals(views ...forge.View) {
	d.t.Helper()
	for range 5 {
		d.edits(views...)
		done := true
		for _, v := range views {
			if d.Projected(v.Intent.ID) != v.Seq {
				done = false
				if problems := d.write(v); len(problems) > 0 {
					d.t.Fatal(problems)
				}
			}
		}
		if done {
			return
		}
	}
	d.t.Fatal("the goals never come to rest")
}

func TestGoalFiles(t *testing.T) {
	d := newFixture(t)
	v := goalView("fix-login", 1)
	s := v.Goal.Iterations[0].Summary
	s.Artifacts = []string{"login.go"}
	s.Metadata = forge.SummaryMetadata{
		ToolsUsed: []string{"Read", "Bash(go test)"}, FilesModified: []string{"login.go"}, ErrorType: "timeout",
		TokensUsed: 15000, StrategyTags: []string{"test-fix"},
	}
	s.Next = &forge.NextAction{SuggestedAction: "go on", Blockers: []string{"none"}, PartialProgress: "half", PendingItems: []string{"rest"}}
	second := *s
	second.Iteration, second.At, second.Metadata, second.Artifacts = 2, goalAt(2), forge.SummaryMetadata{}, nil
	second.Next = &forge.NextAction{SuggestedAction: "stop"}
	third := second
	third.Iteration, third.At, third.Next = 3, goalAt(3), nil
	v.Goal.Iterations = append(v.Goal.Iterations,
		forge.Iteration{Number: 2, Summary: &second}, forge.Iteration{Number: 3, Summary: &third}, forge.Iteration{Number: 4})
	v.Goal.Knowledge[0].ExampleFile = "login.go:15-30"
	v.Goal.Applied = []string{"fix-login/k1", "fix-login/k1"}
	if problems := d.write(v); len(problems) > 0 {
		t.Fatal(problems)
	}
	const head = `"approach":"try <it>","result":"failure","reason":"it \"fails\"","artifacts":`
	const nothing = `[],"metadata":{"tools_used":[],"files_modified":[],"error_type":null,"tokens_used":0,"strategy_tags":[]},"next":`
	want := `{"type":"summary","iteration":1,` + head + `["login.go"],"metadata":{"tools_used":["Read","Bash(go test)"],` +
		`"files_modified":["login.go"],"error_type":"timeout","tokens_used":15000,"strategy_tags":["test-fix"]},` +
		`"next":{"suggested_action":"go on","blockers":["none"],"partial_progress":"half","pending_items":["rest"]},` +
		`"timestamp":"2026-01-23T10:00:01Z","goal":"fix-login"}` + "\n" +
		`{"type":"summary","iteration":2,` + head + nothing +
		`{"suggested_action":"stop","blockers":[],"partial_progress":null,"pending_items":[]},` +
		`"timestamp":"2026-01-23T10:00:02Z","goal":"fix-login"}` + "\n" +
		`{"type":"summary","iteration":3,` + head + nothing + `null,"timestamp":"2026-01-23T10:00:03Z","goal":"fix-login"}` + "\n"
	if diff := cmp.Diff(want, d.goalText(historyFile)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	want = `{"type":"lesson","category":"testing","content":"a \"applied_count\": 7 text","example_file":"login.go:15-30",` +
		`"source_task":"Do it","confidence":"high","applied_count":2,"created_at":"2026-01-23T10:00:01Z","id":"fix-login/k1"}` + "\n"
	if diff := cmp.Diff(want, d.goalText(knowledgeFile)); diff != "" {
		t.Errorf("knowledge (-want +got):\n%s", diff)
	}
	if text := d.goalText(".gitignore"); text != ".forge/\n.e8/\n" {
		t.Errorf(".gitignore is %q", text)
	}
	if _, err := os.Stat(d.shared(".e8/logs")); err == nil {
		t.Error("there are logs that nobody asked for")
	}
}

func TestNoGoalNoFolder(t *testing.T) {
	d := newFixture(t)
	d.write(sample())
	if exists(t, d.shared(layout.GoalDir)) || d.goalText(".gitignore") != ".forge/\n" {
		t.Error("there is no goal")
	}
}

func TestGoalFilesElsewhere(t *testing.T) {
	d := newFixture(t)
	a, b := goalView("a", 1), goalView("b", 1)
	a.Intent.Goal = wholeGoal()
	a.Intent.Goal.KnowledgeFile = a.Intent.Goal.HistoryFile // both in one
	d.transcript("a-001-execute-1.ndjson", "log\n")
	d.writeGoals(a, b)
	d.writeGoals(a, b)
	if n := strings.Count(d.goalText(".e8/login/history.jsonl"), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
	if text := d.goalText(historyFile); strings.Contains(text, `"goal":"a"`) || !strings.Contains(text, `"goal":"b"`) {
		t.Errorf("got %s", text)
	}
	if d.goalText(".e8/login/logs/a/iteration-001.jsonl") != "log\n" {
		t.Error("the log is another one")
	}
	a.Intent.Goal.HistoryFile = "../x"
	if problems, err := d.Write(a); err != nil || len(problems) != 1 {
		t.Errorf("got %v %v", problems, err)
	}
}

// Lines are added to those that are there, whoever wrote them.
func TestGoalLinesAreAdded(t *testing.T) {
	const mine = "{\"type\": \"pattern\", \"content\": \"mine\"}\n<<<<<<< broken\n\n{\"type\":\"summary\",\"iteration\":1}\n\xff"
	d := newFixture(t)
	d.goalPut(historyFile, mine)
	d.goalPut(knowledgeFile, mine)
	v := goalView("fix-login", 2)
	d.writeGoals(v)
	before, info := d.goalText(historyFile), stat(t, d.shared(historyFile))
	if !strings.HasPrefix(before, mine+"\n{") || strings.Count(before, "\n") != 7 {
		t.Errorf("got %s", before)
	}
	iterate(&v)
	d.reopen()
	d.writeGoals(v)
	if after := d.goalText(historyFile); !strings.HasPrefix(after, before) || strings.Count(after, "\n") != 8 {
		t.Errorf("got %s", after)
	}
	if !os.SameFile(info, stat(t, d.shared(historyFile))) {
		t.Error("it was not added to the file")
	}
}

func stat(t testing.TB, name string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// What a crash cut off at any byte is completed.
func TestGoalLinesCutOff(t *testing.T) {
	d := newFixture(t)
	v := goalView("fix-login", 1)
	d.writeGoals(v)
	var from [2]int
	files := [2]string{historyFile, knowledgeFile}
	for i, rel := range files {
		from[i] = len(d.goalText(rel))
	}
	iterate(&v)
	iterate(&v)
	d.writeGoals(v)
	for i, rel := range files {
		want := d.goalText(rel)
		for n := from[i]; n < len(want); n += min(7, max(1, len(want)-1-n)) {
			d.goalPut(rel, want[:n])
			d.writeGoals(v)
			got := d.goalText(rel)
			if n == len(want)-1 { // no line is missing; the next one ends this one
				got += "\n"
			}
			if got != want {
				t.Fatalf("%s, cut off after %d bytes:\n%s", rel, n, cmp.Diff(want, got))
			}
		}
	}
}

func TestGoalFilesAreWrittenAgain(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"the folder": func(d *fixture) { remove(d.t, d.shared(layout.GoalDir)) },
		"a file":     func(d *fixture) { remove(d.t, d.shared(knowledgeFile)) },
		"a line": func(d *fixture) {
			d.goalPut(historyFile, d.goalText(historyFile)[1+strings.Index(d.goalText(historyFile), "\n"):])
		},
		"all lines":       func(d *fixture) { d.goalPut(historyFile, "") },
		"the cache":       func(d *fixture) { remove(d.t, d.file(layout.Cache)) },
		"everything":      func(d *fixture) { remove(d.t, d.shared(layout.GoalDir)); remove(d.t, d.file("")) },
		"nothing":         func(*fixture) {},
		"the ignore file": func(d *fixture) { remove(d.t, d.shared(".gitignore")); remove(d.t, d.shared(layout.GoalDir)) },
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", another run: ", again), func(t *testing.T) {
				d := newFixture(t)
				a, b := goalView("a", 2), goalView("b", 1)
				b.Goal.Applied = []string{"a/k2", "b/k1"}
				a.Goal.Applied = []string{"a/k2"}
				d.writeGoals(a, b)
				history, knowledge := sortedLines(d.goalText(historyFile)), sortedLines(d.goalText(knowledgeFile))
				lose(d)
				if again || name == "everything" || name == "the cache" {
					d.reopen()
				}
				d.writeGoals(a, b)
				if diff := cmp.Diff(history, sortedLines(d.goalText(historyFile))); diff != "" {
					t.Errorf("history (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(knowledge, sortedLines(d.goalText(knowledgeFile))); diff != "" {
					t.Errorf("knowledge (-want +got):\n%s", diff)
				}
				if n := strings.Count(strings.Join(knowledge, ""), `"applied_count":2`); n != 1 || !strings.Contains(d.goalText(".gitignore"), ".e8/\n") {
					t.Errorf("got %s", knowledge)
				}
			})
		}
	}
}

func remove(t testing.TB, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

func sortedLines(text string) []string {
	return slices.Sorted(strings.Lines(text))
}

// Two projects that followed each other in one folder called a goal the same.
func TestGoalOfAnotherLife(t *testing.T) {
	d := newFixture(t)
	v := goalView("fix-login", 1)
	d.writeGoals(v)
	remove(t, d.file(""))
	d.reopen()
	v.Goal.Iterations[0].Summary.At = goalAt(50)
	v.Goal.Knowledge[0].CreatedAt = goalAt(50)
	d.writeGoals(v)
	for _, rel := range []string{historyFile, knowledgeFile} {
		if n := strings.Count(d.goalText(rel), "\n"); n != 2 {
			t.Errorf("%s has %d lines", rel, n)
		}
	}
}

// A count is put right, and nothing else of a line.
func TestAppliedCount(t *testing.T) {
	d := newFixture(t)
	a, b := goalView("a", 2), goalView("b", 1)
	a.Intent.Goal = &forge.GoalOptions{KnowledgeFile: ".e8/a.jsonl"}
	d.writeGoals(a, b)
	mine := strings.Replace(d.goalText(".e8/a.jsonl"), `"category":"testing"`, `"category" : "mine"`, 1) + "mine\n"
	mine = strings.Replace(mine, `"applied_count":0`, `"applied_count" : 0`, 1)
	d.goalPut(".e8/a.jsonl", mine)
	b.Goal.Applied = []string{"a/k1", "a/k2", "a/k1", "gone/k1"}
	b.Seq++
	d.writeGoals(a, b)
	want := strings.Replace(mine, `"applied_count" : 0`, `"applied_count" : 2`, 1)
	want = strings.Replace(want, `"applied_count":0`, `"applied_count":1`, 1)
	if diff := cmp.Diff(want, d.goalText(".e8/a.jsonl")); diff != "" {
		t.Errorf("knowledge (-want +got):\n%s", diff)
	}
	d.goalPut(".e8/a.jsonl", strings.Replace(want, `"applied_count":1`, `"applied_count":99`, 1))
	d.writeGoals(a, b)
	if diff := cmp.Diff(want, d.goalText(".e8/a.jsonl")); diff != "" {
		t.Errorf("a count of a person (-want +got):\n%s", diff)
	}
}

// What other goals had of knowledge is known after the index was written anew.
func TestAppliedCountStays(t *testing.T) {
	d := newFixture(t)
	a, b := goalView("a", 1), goalView("b", 1)
	b.Goal.Applied = []string{"a/k1"}
	d.writeGoals(a, b)
	d.put(layout.Index, d.text(layout.Index)+"torn")
	d.reopen()
	d.reopen()
	a.Seq++
	d.write(a)
	if text := d.goalText(knowledgeFile); strings.Count(text, `"applied_count":1`) != 1 {
		t.Errorf("got %s", text)
	}
}

func TestGoalLogs(t *testing.T) {
	d := newFixture(t)
	v := goalView("fix", 2)
	v.Intent.Goal = &forge.GoalOptions{RawLog: true}
	v.Goal.Iterations[1].Attempt = 3
	v.Goal.Iterations = append(v.Goal.Iterations, forge.Iteration{Number: 3, Attempt: 4}) // not summed up
	for n := range 4 {
		d.transcript(fmt.Sprintf("fix-001-execute-%d.ndjson", n+1), fmt.Sprintf("attempt %d\n", n+1))
	}
	d.writeGoals(v)
	for name, want := range map[string]string{"001": "attempt 1\n", "002": "attempt 2\nattempt 3\n"} {
		if got := d.goalText(".e8/logs/fix/iteration-" + name + ".jsonl"); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if exists(t, d.shared(".e8/logs/fix/iteration-003.jsonl")) {
		t.Error("there is a log of an iteration that goes on")
	}
	d.goalPut(".e8/logs/fix/iteration-001.jsonl", "mine\n")
	remove(t, d.file("logs"))
	v.Seq++
	d.writeGoals(v)
	if d.goalText(".e8/logs/fix/iteration-001.jsonl") != "mine\n" {
		t.Error("a person's file was overwritten")
	}
}

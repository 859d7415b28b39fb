package forgedir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/goals"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// goalStory lets two goals iterate, help each other, and a person write between them.
func goalStory(d *fixture, a, b *forge.View) {
	chapters := []func(){
		func() {},
		func() { iterate(a) },
		func() { b.Goal.Applied, b.Seq = append(slices.Clone(b.Goal.Applied), "a/k1", "b/k1"), b.Seq+1 },
		func() { iterate(b); iterate(a); a.Goal.Applied = []string{"a/k1"} },
	}
	for _, chapter := range chapters {
		chapter()
		d.writeGoals(*a, *b)
	}
}

func goalFixture(t *testing.T, noSwap bool) (*fixture, *forge.View, *forge.View) {
	t.Helper()
	d := newFixture(t)
	d.disk.NoSwap = noSwap
	a, b := goalView("a", 1), goalView("b", 1)
	a.Intent.Goal = &forge.GoalOptions{RawLog: true}
	for n := range 3 {
		d.transcript(fmt.Sprintf("a-001-execute-%d.ndjson", n+1), fmt.Sprintf("attempt %d\n", n+1))
	}
	d.goalPut(knowledgeFile, "mine\n")
	return d, &a, &b
}

// below returns every file of the goals.
func (d *fixture) below() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	for _, rel := range []string{
		historyFile, knowledgeFile, ".e8/logs/a/iteration-001.jsonl", ".e8/logs/a/iteration-002.jsonl", ".e8/logs/a/iteration-003.jsonl",
	} {
		all[rel] = strings.Join(sortedLines(strings.TrimSuffix(d.goalText(rel), "\n")+"\n"), "")
	}
	return all
}

// Killed at every point, no line is lost and none is there twice.
func TestGoalsKilledAnywhere(t *testing.T) {
	for name, noSwap := range swapping {
		d, a, b := goalFixture(t, noSwap)
		var points []string
		d.disk.Reached = func(point string) { points = append(points, point) }
		goalStory(d, a, b)
		want := d.below()
		for _, point := range []string{"goals ignored", "goal opened", "goal extended", "goal recorded", "checked", "dismissed", "log staged", "log installed"} {
			if !slices.Contains(points, point) {
				t.Errorf("%s: the story never comes to %q", name, point)
			}
		}
		for n := 0; n < len(points); n += testsize.Of(7, 1) {
			point := points[n]
			d, a, b := goalFixture(t, noSwap)
			count := 0
			d.disk.Reached = func(point string) {
				if count++; count == n+1 {
					panic(crash{point})
				}
			}
			if !dies(func() { goalStory(d, a, b) }) {
				t.Fatalf("%s: not killed at %d %s", name, n, point)
			}
			d.reopen()
			d.disk.NoSwap = noSwap
			whole, wholeB := goalView("a", 3), goalView("b", 2)
			whole.Intent.Goal, whole.Goal.Applied = a.Intent.Goal, []string{"a/k1"}
			whole.Seq, wholeB.Seq = 100, 100
			wholeB.Goal.Applied = []string{"a/k1", "b/k1"}
			d.writeGoals(whole, wholeB)
			if diff := cmp.Diff(want, d.below()); diff != "" {
				t.Errorf("%s: killed at %d %s (-want +got):\n%s", name, n, point, diff)
			}
			if kept := d.under(layout.Kept); len(kept) > 0 {
				t.Errorf("%s: killed at %d %s: a version of ours is kept: %v", name, n, point, kept)
			}
			_ = d.Close()
		}
	}
}

// A person saves at every point: what was saved is there in the end, and so is all
// of ours.
func TestGoalsSavedAnywhere(t *testing.T) {
	d, a, b := goalFixture(t, false)
	count := 0
	d.disk.Reached = func(string) { count++ }
	goalStory(d, a, b)
	want := d.below()
	for n := 0; n < count; n += testsize.Of(7, 1) {
		d, a, b := goalFixture(t, false)
		d.disk.Linger = 0
		at, now, inside := "", 0, false
		d.disk.Reached = func(point string) {
			if now++; now == n+1 && !inside && exists(t, d.shared(knowledgeFile)) {
				inside, at = true, point
				text := d.goalText(knowledgeFile) + "by hand" // without an end of the line
				d.goalPut(knowledgeFile+"~", text)
				if err := os.Rename(d.shared(knowledgeFile+"~"), d.shared(knowledgeFile)); err != nil {
					t.Fatal(err)
				}
			}
		}
		goalStory(d, a, b)
		d.writeGoals(*a, *b)
		got := d.below()
		if at != "" {
			want := maps.Clone(want)
			want[knowledgeFile] = strings.Join(sortedLines(want[knowledgeFile]+"by hand\n"), "")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("saved at %d %s (-want +got):\n%s", n, at, diff)
			}
		}
		_ = d.Close()
	}
}

// An editor opened the file before it was replaced, and writes to it after.
func TestGoalsLateWriterInPlace(t *testing.T) {
	d := newFixture(t)
	d.disk.Linger = 0
	v := goalView("a", 1)
	d.writeGoals(v)
	f, err := os.OpenFile(d.shared(knowledgeFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	iterate(&v)
	v.Goal.Applied = []string{"a/k1"}
	d.write(v)
	if _, err := f.WriteString("by hand\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.writeGoals(v)
	want := slices.Sorted(slices.Values(append(ours(t, []forge.View{v})[2:], "by hand\n")))
	if diff := cmp.Diff(want, sortedLines(d.goalText(knowledgeFile))); diff != "" {
		t.Errorf("knowledge (-want +got):\n%s", diff)
	}
}

// What a person put in the way is said, is not followed, and stops nothing else.
func TestGoalsInTheWay(t *testing.T) {
	const folder, file = ", not a directory (remove it)", ", not a regular file (put a regular file in its place, or remove it)"
	link := func(rel string) func(*fixture, string) error {
		return func(d *fixture, to string) error { return os.Symlink(to, d.shared(rel)) }
	}
	text := func(rel string) func(*fixture, string) error {
		return func(d *fixture, _ string) error { return os.WriteFile(d.shared(rel), nil, 0o644) }
	}
	pipe := func(d *fixture, _ string) error { return syscall.Mkfifo(d.shared(historyFile), 0o644) }
	for _, tt := range []struct {
		name string
		make func(d *fixture, outside string) error
		gone string
		want string
	}{
		{"the folder", link(layout.GoalDir), layout.GoalDir, ".e8: is a symbolic link" + folder},
		{"a file", text(layout.GoalDir), layout.GoalDir, ".e8: is a file" + folder},
		{"a folder in it", link(".e8/login"), ".e8/login", ".e8/login: is a symbolic link" + folder},
		{"a file in it", text(".e8/login"), ".e8/login", ".e8/login: is a file" + folder},
		{"the history", link(historyFile), historyFile, historyFile + ": is a symbolic link" + file},
		{"a pipe", pipe, historyFile, historyFile + ": is a named pipe" + file},
		{"the logs", link(".e8/logs"), ".e8/logs", ".e8/logs: is a symbolic link" + folder},
		{"the ignore file", func(d *fixture, to string) error {
			d.goalPut(".git/info/exclude", ".forge/\n")
			remove(d.t, d.shared(".gitignore"))
			return os.Symlink(to+"/x", d.shared(".gitignore"))
		}, ".gitignore", ".gitignore: is a symbolic link (make it a regular file, or add .e8/ to .git/info/exclude)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, outside := newFixture(t), t.TempDir()
			if strings.HasPrefix(tt.gone, layout.GoalDir+"/") {
				if err := os.Mkdir(d.shared(layout.GoalDir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.make(d, outside); err != nil {
				t.Fatal(err)
			}
			d.transcript("fix-login-001-execute-1.ndjson", "log\n")
			v := goalView("fix-login", 1)
			v.Intent.Goal = &forge.GoalOptions{RawLog: true, KnowledgeFile: ".e8/login/knowledge.jsonl"}
			problems := d.write(v)
			if len(problems) == 0 || problems[0].Error() != tt.want || len(slices.Compact(slices.Clone(problems))) != len(problems) {
				t.Errorf("got %v, want %s, once", problems, tt.want)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("something was written through the link: %v %v", entries, err)
			}
			if !exists(t, d.file(fixLogin)) || d.Projected("fix-login") != 0 {
				t.Error("the intent's file is not written, or all is")
			}
			remove(t, d.shared(tt.gone))
			d.writeGoals(v)
			for _, rel := range []string{historyFile, ".e8/login/knowledge.jsonl", ".e8/logs/fix-login/iteration-001.jsonl"} {
				if text := d.goalText(rel); strings.Count(text, "\n") != 1 {
					t.Errorf("%s holds %q", rel, text)
				}
			}
		})
	}
}

// Whatever happens to the files in whatever order: each line of ours is there
// once, and each line of a person stays.
func TestGoalsAtRandom(t *testing.T) {
	testsize.Checks(t, 20, 100)
	rapid.Check(t, func(rt *rapid.T) {
		d := newFixture(t)
		defer func() { _ = d.Close() }()
		d.disk.Linger = 0
		views := []forge.View{goalView("a", 0), goalView("b", 0)}
		mine := map[string]bool{}
		pick := func() *forge.View { return &views[rapid.IntRange(0, 1).Draw(rt, "goal")] }
		file := func() string { return rapid.SampledFrom([]string{historyFile, knowledgeFile}).Draw(rt, "file") }
		steps := map[string]func(){
			"iterate": func() { iterate(pick()) },
			"apply": func() {
				v := pick()
				id := fmt.Sprintf("%s/k%d", pick().Intent.ID, rapid.IntRange(1, 3).Draw(rt, "knowledge"))
				v.Goal.Applied, v.Seq = append(slices.Clone(v.Goal.Applied), id), v.Seq+1
			},
			"write": func() { d.write(*pick()) },
			"run":   func() { d.writeGoals(views...) },
			"crash": func() {
				left := rapid.IntRange(1, 12).Draw(rt, "steps")
				d.disk.Reached = func(point string) {
					if left--; left == 0 {
						panic(crash{point})
					}
				}
				dies(func() { d.writeGoals(views...) })
				d.reopen()
				d.disk.Linger = 0
			},
			"cut off": func() {
				rel := file()
				data, err := os.ReadFile(d.shared(rel))
				last := bytes.LastIndexByte(bytes.TrimSuffix(data, []byte("\n")), '\n') + 1
				if err != nil || bytes.HasPrefix(data[last:], []byte("mine")) || len(data) == last {
					return
				}
				d.goalPut(rel, string(data[:rapid.IntRange(last, len(data)-1).Draw(rt, "bytes")]))
			},
			"append by hand": func() {
				rel, line := file(), fmt.Sprintf("mine %d", len(mine))
				data, _ := os.ReadFile(d.shared(rel))
				if len(data) > 0 && data[len(data)-1] != '\n' {
					return
				}
				mine[line] = true
				d.goalPut(rel, string(data)+line+"\n")
			},
			"lose the cache": func() { remove(t, d.file(layout.Cache)); d.reopen(); d.disk.Linger = 0 },
		}
		names := slices.Sorted(maps.Keys(steps))
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			steps[rapid.SampledFrom(names).Draw(rt, "step")]()
		}
		d.writeGoals(views...)
		d.writeGoals(views...)
		text := "\n" + d.allLines()
		for line := range mine {
			if strings.Count(text, "\n"+line+"\n") != 1 {
				rt.Errorf("%q is lost or twice there", line)
			}
		}
		for _, want := range ours(t, views) {
			if strings.Count(text, "\n"+want) != 1 {
				rt.Errorf("%d times: %s in\n%s", strings.Count(text, "\n"+want), want, text)
			}
		}
	})
}

func (d *fixture) allLines() string {
	text := ""
	for _, rel := range []string{historyFile, knowledgeFile} {
		data, err := os.ReadFile(d.shared(rel))
		if err != nil {
			continue
		}
		text += strings.TrimSuffix(string(data), "\n") + "\n"
	}
	return text
}

// ours returns the lines that the goals have, with their counts.
func ours(t testing.TB, views []forge.View) []string {
	t.Helper()
	tally := map[string]int{}
	for _, v := range views {
		for _, id := range v.Goal.Applied {
			tally[id]++
		}
	}
	var out []string
	add := func(line any) {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.String())
	}
	none := []string{}
	for _, v := range views {
		for _, it := range v.Goal.Iterations {
			s := it.Summary
			add(goals.HistoryLine{
				Type: "summary", Iteration: s.Iteration, Approach: s.Approach, Result: string(s.Result), Reason: s.Reason,
				Artifacts: none, Metadata: goals.HistoryMetadata{ToolsUsed: none, FilesModified: none, StrategyTags: none},
				Timestamp: s.At, Goal: string(v.Intent.ID),
			})
		}
		for _, k := range v.Goal.Knowledge {
			add(goals.KnowledgeLine{
				Type: string(k.Type), Category: k.Category, Content: k.Content, SourceTask: k.SourceTask,
				Confidence: string(k.Confidence), AppliedCount: tally[k.ID], CreatedAt: k.CreatedAt, ID: k.ID,
			})
		}
	}
	return out
}

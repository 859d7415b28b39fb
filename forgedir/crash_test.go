package forgedir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

func under(name, dir string) bool { return strings.HasPrefix(name, dir+"/") }

// crash is the panic in place of the end of the process.
type crash struct{ point string }

// dies reports whether the story was cut off by a crash.
func dies(story func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			died = true
		}
	}()
	story()
	return false
}

// story is a bit of everything that is done to the files, with a run after
// each chapter, until somebody says that it is enough.
func story(d *fixture, j *journal, enough func() bool) {
	var v *forge.View
	for _, chapter := range []func(){
		func() { d.put(layout.Drafts+"/fix-login.md", "First title\n\ntext\n") },
		func() { d.replace(fixLogin, "title: First title", "# marker-comment\ntitle: Second title") },
		func() {
			v = j.views["fix-login"]
			v.Tasks = []forge.Task{{ID: "fix-login-001", Title: "one"}, {ID: "fix-login-002", Title: "two"}}
			v.Observations = []forge.Observation{{Content: "seen"}}
			j.change(v)
		},
		func() {
			d.put("work/fix-login-002.yaml", "marker-task\n")
			d.replace(fixLogin, "answer: null", "answer: marker-answer")
			v.Tasks = v.Tasks[:1]
			v.Tasks[0].Status = forge.TaskDone
			v.Observations = append(v.Observations, forge.Observation{Content: "seen more"})
			j.change(v)
		},
		func() {
			d.replace("work/fix-login-001.yaml", "title: one", "title: marker-title")
			v.Tasks[0].Status = forge.TaskFailed
			j.change(v)
		},
		func() { d.replace(fixLogin, "status: proposed", "status: approved") },
	} {
		if chapter(); enough() {
			return
		}
		j.run(d)
	}
}

func never() bool { return false }

// points runs the story and returns the names of the places where it can be
// interrupted, in order.
func points(t *testing.T, noSwap bool) []string {
	t.Helper()
	d, j := newFixture(t), newJournal(t)
	var names []string
	d.disk.NoSwap = noSwap
	d.disk.Reached = func(point string) { names = append(names, point) }
	story(d, j, never)
	j.check(d)
	return names
}

var swapping = map[string]bool{"with swaps": false, "without swaps": true}

// Killed at every single point, the next run ends up where it would have.
func TestKilledAnywhere(t *testing.T) {
	for name, noSwap := range swapping {
		t.Run(name, func(t *testing.T) {
			all := points(t, noSwap)
			for _, want := range []string{
				"recorded", "staged fresh", "staged", "checked", "installed", "swapped", "dismissed",
				"kept fresh", "imported", "removed", "base",
			} {
				if want != "swapped" && !slices.Contains(all, want) {
					t.Errorf("the story never comes to %q", want)
				}
			}
			for n := 0; n < len(all); n += testsize.Of(11, 1) {
				killedAt(t, n, all[n], noSwap)
			}
		})
	}
}

func killedAt(t *testing.T, n int, point string, noSwap bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%d %s", n, point), func(t *testing.T) {
		d, j := newFixture(t), newJournal(t)
		d.disk.NoSwap = noSwap
		count := 0
		d.disk.Reached = func(point string) {
			if count++; count == n+1 {
				panic(crash{point})
			}
		}
		if !dies(func() { story(d, j, never) }) {
			t.Fatal("it was not killed")
		}
		mine := marks(d, j)
		d.reopen()
		d.disk.NoSwap = noSwap
		for _, p := range j.run(d) {
			t.Logf("after the crash: %v", p)
		}
		if problems := j.run(d); len(problems) > 0 {
			t.Errorf("problems %v", problems)
		}
		for _, mark := range mine {
			if !slices.Contains(marks(d, j), mark) {
				t.Errorf("%s is lost", mark)
			}
		}
		d.reopen()
		j.check(d)
		if inputs, problems := d.edits(*j.views["fix-login"]); len(inputs)+len(problems) > 0 {
			t.Errorf("our own files look like edits: %v %v", inputs, problems)
		}
	})
}

// marks returns what the person wrote and is still somewhere: decided, in
// place, or kept.
func marks(d *fixture, j *journal) []string {
	var found []string
	everywhere := fmt.Sprintf("%q", j.titles)
	for _, v := range j.views {
		for _, c := range v.Intent.Clarifications {
			if c.Answer != nil {
				everywhere += " " + *c.Answer
			}
		}
	}
	for _, text := range d.everything() {
		everywhere += " " + text
	}
	for _, mark := range []string{"First title", "Second title", "marker-comment", "marker-task", "marker-answer", "marker-title"} {
		if strings.Contains(everywhere, mark) {
			found = append(found, mark)
		}
	}
	return found
}

// A person saves at every single point: the edit is decided in the end.
func TestSavedAnywhere(t *testing.T) {
	saves := map[string]func(*fixture, string){
		"in place":    func(d *fixture, text string) { d.put(fixLogin, text) },
		"by a rename": func(d *fixture, text string) { d.save(fixLogin, text) },
	}
	for how, save := range saves {
		t.Run(how, func(t *testing.T) {
			all := points(t, false)
			for n := 0; n < len(all); n += testsize.Of(11, 1) {
				savedAt(t, n, all[n], save)
			}
		})
	}
}

func savedAt(t *testing.T, n int, point string, save func(*fixture, string)) {
	t.Helper()
	t.Run(fmt.Sprintf("%d %s", n, point), func(t *testing.T) {
		d, j := newFixture(t), newJournal(t)
		d.disk.Linger = 0
		count, before := 0, ""
		d.disk.Reached = func(string) {
			if count++; count == n+1 && exists(t, d.file(fixLogin)) {
				before = d.text(fixLogin)
				title, rest, _ := strings.Cut(before, "\n")
				save(d, title+" by hand\n"+rest)
			}
		}
		story(d, j, func() bool { return count > n })
		d.disk.Reached = func(string) {}
		if before == "" {
			return // there was no file yet
		}
		if problems := j.run(d); len(problems) > 0 {
			t.Logf("problems %v", problems)
		}
		j.run(d)
		if titles := fmt.Sprintf("%q", j.titles); !strings.Contains(titles, "by hand") && !kept(d, "by hand") {
			t.Errorf("the edit is lost; titles %s", titles)
		}
	})
}

func kept(d *fixture, text string) bool {
	for _, name := range d.under(layout.Kept) {
		if strings.Contains(d.text(name), text) {
			return true
		}
	}
	return false
}

// The person's file stays in place when it is saved while ours is under way:
// before the last look it is not even touched.
func TestSavedWhileWriting(t *testing.T) {
	for point, touched := range map[string]bool{"recorded": false, "staged": false, "checked": true} {
		t.Run(point, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			mine := strings.Replace(d.text(fixLogin), "title: Mend", "title: Repair", 1)
			swapped := false
			d.disk.Reached = func(at string) {
				if at == point {
					d.save(fixLogin, mine)
				}
				swapped = swapped || at == "swapped"
			}
			v.Seq, v.Summary.Reason = 8, "something new"
			d.write(v)
			if d.text(fixLogin) != mine {
				t.Error("the person's version is not in its place")
			}
			if swapped != touched {
				t.Errorf("swapped: %v", swapped)
			}
			if d.Projected("fix-login") == v.Seq {
				t.Error("the intent counts as written")
			}
		})
	}
}

// An editor opened the file before it was replaced, and writes to it after.
func TestLateWriterInPlace(t *testing.T) {
	d := newFixture(t)
	d.disk.Linger = 0
	v := sample()
	d.write(v)
	f, err := os.OpenFile(d.file(fixLogin), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(d.text(fixLogin), "title: Mend", "title: Repair", 1)
	v.Seq, v.Summary.Reason = 8, "something new"
	d.write(v)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	inputs, problems := d.edits(v)
	if len(inputs) != 1 || len(problems) > 0 || describe(inputs[0].Events[0]) != `edit title="Repair the login check"` {
		t.Errorf("got %v %v", inputs, problems)
	}
}

// Files in the staging area that no version of ours explains are a person's.
func TestLeftoversAreGivenBack(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	mine := strings.Replace(d.text(fixLogin), "title: Mend", "title: Repair", 1)
	d.put(layout.Staging+"/intents%fix-login.yaml"+disk.Staged, mine)
	d.put(layout.Staging+"/intents%gone.yaml"+disk.Staged+disk.Aside, "theirs\n")
	d.put(layout.Replaced+"/work%fix-login-001.yaml%2026", "notes\n")
	d.put(layout.Staging+"/intents%fix-login.yaml"+disk.Fresh, "half")
	d.reopen()
	if d.text(fixLogin) != mine || d.text("intents/gone.yaml") != "theirs\n" || !kept(d, "notes") {
		t.Error("a person's version is not in its place")
	}
	if entries, err := os.ReadDir(filepath.Join(d.root, layout.Dir, layout.Staging)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}

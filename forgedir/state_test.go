package forgedir

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

func (d *fixture) state(summaries ...forge.Summary) string {
	d.t.Helper()
	if _, err := d.WriteState(summaries); err != nil {
		d.t.Fatal(err)
	}
	return d.text(layout.State)
}

// state.yaml has the tasks that are done as well, which lists leave out.
func TestStateHasAllTasks(t *testing.T) {
	for _, tt := range []struct {
		name string
		next func(*fixture)
	}{
		{"in the same run", func(*fixture) {}},
		{"in the next run", (*fixture).reopen},
		{"in the next run, without the last file", func(d *fixture) {
			d.remove(layout.State)
			d.reopen()
		}},
		{"in the next run, with a file of another format", func(d *fixture) {
			d.remove(layout.State)
			d.put(layout.State, "intents:\n  - id: fix-login\n    title: mine\n")
			d.reopen()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v, other := whole(), sample().Summary
			other.Key.Intent, other.Tasks = "123", nil
			project := forge.Summary{Key: forge.Key{Project: "demo"}, Waiting: forge.WaitingPaused}
			d.write(v)
			if want := d.state(v.Summary, other); strings.Contains(want, "\npaused: true") {
				t.Errorf("nothing is paused:\n%s", want)
			}
			want := d.state(v.Summary, other, project)
			if !strings.HasPrefix(want, "format: 2\npaused: true\nintents:\n") {
				t.Errorf("it is paused:\n%s", want)
			}
			for _, row := range []string{
				"- id: fix-login-001\n        title: Check the form\n        status: pending",
				"- id: fix-login-002\n        title: Record the skill\n        status: done",
			} {
				if !strings.Contains(want, row) {
					t.Errorf("no %s in\n%s", row, want)
				}
			}
			tt.next(d)
			if got := d.state(v.Summary, other, project); got != want {
				t.Errorf("written again:\n%s\nwant\n%s", got, want)
			}
			v.Tasks[0].Status, v.Summary.Tasks = forge.TaskDone, nil
			v.Seq++
			v.Summary.UpdatedAt = v.Summary.UpdatedAt.Add(time.Second)
			d.write(v)
			if got := d.state(v.Summary, other); strings.Count(got, "status: done") != 2 || strings.Count(got, "123") != 1 {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// The lists may know of a decision a moment before the tasks do.
func TestStateFollowsTheTasks(t *testing.T) {
	d := newFixture(t)
	v := sample()
	v.Summary.Tasks = nil
	v.Tasks[0].Status = forge.TaskImplementing
	d.write(v)
	d.state(v.Summary)
	v.Seq++
	v.Tasks[0].Status = forge.TaskDone
	d.write(v)
	if got := d.state(v.Summary); !strings.Contains(got, "status: done") {
		t.Errorf("got\n%s", got)
	}
}

func TestReportGoesWithItsAudit(t *testing.T) {
	d := newFixture(t)
	v := whole()
	d.write(v)
	const rel = "reports/fix-login.md"
	want := d.text(rel)
	if err := os.WriteFile(d.file(rel), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.edits(v)
	if problems := d.write(v); len(problems) != 1 || d.text(rel) != want || !kept(d, "mine") {
		t.Errorf("got %v\n%s", problems, d.text(rel))
	}
	v.Seq++
	v.Audit = nil
	d.write(v)
	if exists(t, d.file(rel)) {
		t.Error("the report is left")
	}
}

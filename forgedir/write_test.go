package forgedir

import (
	"flag"
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

var rewrite = flag.Bool("rewrite", false, "write the expected files of testdata anew")

// projection returns what is on the desk, without what is kept behind it and what
// is the same for all.
func (d *fixture) projection() map[string]string {
	all := d.everything()
	for p := range all {
		if strings.HasPrefix(p, layout.Cache+"/") || strings.HasPrefix(p, layout.Schemas+"/") {
			delete(all, p)
		}
	}
	return all
}

// whole is the sample with a value in every field that files show.
func whole() forge.View {
	v := sample()
	v.Intent.Parent, v.Intent.Depth, v.Intent.Generation = "sign-in", 1, 1
	v.Intent.Criteria, v.Intent.Priority, v.Intent.Agent, v.Intent.BudgetUSD = []string{"all forms check"}, 2, "claude", 1.5
	v.Intent.Goal = wholeGoal()
	v.Tasks[0].Criteria = v.Intent.Criteria
	v.Summary.Goal = &forge.GoalSummary{Iteration: 3, Most: 7, Used: 2, Criteria: 1, Met: 1, Status: forge.LoopCompleted}
	v.Summary.Parent, v.Summary.Requester, v.Summary.Approval.By = "sign-in", "ada", []string{"grace"}
	v.Summary.Children = []forge.ChildSummary{{ID: "fix-login-form", Title: "The form", Status: forge.StatusExecuting}}
	v.Summary.Tasks[0].Paused = true
	v.Summary.Tasks[0].Overlaps = []forge.Overlap{{TaskID: "other-002", Files: []string{"login.go"}}}
	v.Tasks[0].DependsOn, v.Tasks[0].Failure = []forge.TaskID{"fix-login-002"}, "paused"
	v.Tasks = append(v.Tasks, forge.Task{
		ID: "fix-login-002", IntentID: "fix-login", Title: "Record the skill", Status: forge.TaskDone, Attempts: 1,
		Write: &forge.FileWrite{Path: ".claude/skills/forms/SKILL.md", Content: "---\nname: forms\n---\n"}, Commit: "cccc",
	})
	v.Observations[0].ID, v.Observations[0].Processed = "fix-login-1-1", true
	v.History[0].Observations[0].ID = "fix-login-1-2"
	v.History[0].StartedAt = v.History[0].CreatedAt.Add(-time.Minute)
	v.Audit = &forge.Audit{
		Summary: "The login is checked by hand.",
		Areas: []forge.AuditArea{
			{Name: "Design", Summary: "Two forms.", Findings: []forge.Finding{
				{Title: "A name", Severity: forge.RiskLow},
				{
					Title: "Two forms check\nthe same", Detail: "By hand.\n\nTwice.\x1b[31m", Severity: forge.RiskHigh,
					Evidence: []forge.Evidence{{Type: forge.EvidenceFile, Ref: "login.go"}, {Type: forge.EvidenceDecision, Ref: "a `word`"}},
				},
			}},
			{Name: "debt", Findings: []forge.Finding{{Title: "An old library", Severity: forge.RiskMed}}},
			{Name: "speed|size", Summary: "Enough."},
		},
	}
	return v
}

func TestFiles(t *testing.T) {
	d := newFixture(t)
	v := whole()
	if problems := d.write(v); len(problems) > 0 {
		t.Fatal(problems)
	}
	second := v.Summary
	second.Key.Intent, second.Tasks, second.Waiting, second.Plan = "add-tests", nil, "", ""
	second.Parent, second.Children, second.Goal = "", nil, nil
	if _, err := d.WriteState([]forge.Summary{v.Summary, {Key: forge.Key{Project: "demo"}}, second}); err != nil {
		t.Fatal(err)
	}
	got := d.projection()
	if *rewrite {
		for name, text := range got {
			file := filepath.Join("testdata", "files", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			writeText(t, file, text)
		}
	}
	want := map[string]string{}
	for name := range got {
		data, err := os.ReadFile(filepath.Join("testdata", "files", name))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	names := []string{
		"intents/fix-login.yaml", "knowledge/history/fix-login-1.yaml", "observations.yaml", "reports/fix-login.md",
		"reviews/fix-login-001-1.yaml", "state.yaml", "work/fix-login-001.yaml", "work/fix-login-002.yaml",
	}
	var have []string
	for name := range got {
		have = append(have, name)
	}
	slices.Sort(have)
	if diff := cmp.Diff(names, have); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// inodes tells which files were written anew.
func (d *fixture) inodes() map[string]os.FileInfo {
	out := map[string]os.FileInfo{}
	for name := range d.projection() {
		info, err := os.Lstat(d.file(name))
		if err != nil {
			d.t.Fatal(err)
		}
		out[name] = info
	}
	return out
}

func TestWriteTouchesOnlyWhatChanged(t *testing.T) {
	for _, again := range []struct {
		name string
		do   func(*fixture)
	}{
		{"in the same run", func(*fixture) {}},
		{"in the next run", (*fixture).reopen},
		{"without the cache", func(d *fixture) {
			if err := os.RemoveAll(d.file(layout.Cache)); err != nil {
				d.t.Fatal(err)
			}
			d.reopen()
		}},
	} {
		t.Run(again.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			before := d.inodes()
			again.do(d)
			v.Seq++
			v.Tasks[0].Status = forge.TaskDone
			if problems := d.write(v); len(problems) > 0 {
				t.Errorf("problems %v", problems)
			}
			after := d.inodes()
			for name, info := range before {
				if changed := !os.SameFile(info, after[name]); changed != (name == "work/fix-login-001.yaml") {
					t.Errorf("%s: written anew: %v", name, changed)
				}
			}
			if d.Projected("fix-login") != 8 {
				t.Errorf("projected up to %d, want 8", d.Projected("fix-login"))
			}
			d.reopen()
			if d.Projected("fix-login") != 8 {
				t.Errorf("after a restart: projected up to %d, want 8", d.Projected("fix-login"))
			}
		})
	}
}

func TestRemovedFilesComeBack(t *testing.T) {
	for _, name := range []string{
		"intents/fix-login.yaml", "work/fix-login-001.yaml", "reviews/fix-login-001-1.yaml",
		"knowledge/history/fix-login-1.yaml", "observations.yaml",
	} {
		for _, how := range []string{"removed", "emptied"} {
			if how == "emptied" && name != "intents/fix-login.yaml" {
				continue // seen when it is written next
			}
			t.Run(name+" "+how, func(t *testing.T) {
				d := newFixture(t)
				v := sample()
				d.write(v)
				want := d.text(name)
				if how == "emptied" {
					d.put(name, "")
				} else if err := os.Remove(d.file(name)); err != nil {
					t.Fatal(err)
				}
				d.reopen()
				if inputs, problems := d.edits(v); len(inputs)+len(problems) > 0 {
					t.Errorf("got %v %v", inputs, problems)
				}
				if d.Projected("fix-login") != 0 {
					t.Error("nobody knows that it is gone")
				}
				d.write(v)
				if diff := cmp.Diff(want, d.text(name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				if d.Projected("fix-login") != v.Seq {
					t.Error("it is not known to be back")
				}
			})
		}
	}
}

func TestFilesOfAnOlderPlanGo(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.put("reviews/fix-login-001-1.yaml", "a person's notes\n")
	v.Seq++
	v.Tasks[0].ID, v.Reviews = "fix-login-002", nil
	d.write(v)
	if exists(t, d.file("work/fix-login-001.yaml")) || exists(t, d.file("reviews/fix-login-001-1.yaml")) {
		t.Error("files of the older plan are left")
	}
	if !exists(t, d.file("work/fix-login-002.yaml")) || !exists(t, d.file("knowledge/history/fix-login-1.yaml")) {
		t.Error("files of the new plan, or the history, are gone")
	}
	kept := d.under(layout.Kept)
	if len(kept) != 1 || d.text(kept[0]) != "a person's notes\n" {
		t.Errorf("the person's notes were not kept: %v", kept)
	}
}

func TestChangesThatNobodyReadsAreKept(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	if _, err := d.WriteState([]forge.Summary{v.Summary}); err != nil {
		t.Fatal(err)
	}
	d.put("work/fix-login-001.yaml", "status: done\n")
	d.put("state.yaml", "intents: none\n")
	v.Seq++
	v.Tasks[0].Status = forge.TaskImplementing
	problems := d.write(v)
	v.Summary.Status = forge.StatusExecuting
	more, err := d.WriteState([]forge.Summary{v.Summary})
	if err != nil {
		t.Fatal(err)
	}
	problems = append(problems, more...)
	if len(problems) != 2 {
		t.Fatalf("got problems %v", problems)
	}
	for i, text := range []string{"status: done\n", "intents: none\n"} {
		p := problems[i]
		const reason = "edits to this file have no effect; it was restored"
		kept, ok := strings.CutPrefix(p.Hint, "your copy: .forge/")
		if p.Reason != reason || !ok || d.text(kept) != text {
			t.Errorf("got problem %v", p)
		}
	}
	if !strings.Contains(d.text("work/fix-login-001.yaml"), "status: implementing") ||
		!strings.Contains(d.text("state.yaml"), "status: executing") {
		t.Error("the files were not written")
	}
	if again := d.write(v); len(again) > 0 {
		t.Errorf("named twice: %v", again)
	}
}

func TestObservationsStayInOrder(t *testing.T) {
	d := newFixture(t)
	a, b := sample(), sample()
	b.Intent.ID = "other"
	b.Tasks, b.Reviews, b.History = nil, nil, nil
	d.write(a)
	d.write(b)
	d.reopen()
	a.Seq++
	a.Observations[0].Processed = true
	a.Observations = append(a.Observations, forge.Observation{Content: "later", Source: forge.StepReview})
	d.write(a)
	want := []string{"fix-login true", "other false", "fix-login false"}
	var got []string
	for _, e := range strings.Split(d.text(layout.Observations), "- content: ")[1:] {
		var line []string
		for l := range strings.Lines(e) {
			for _, key := range []string{"  intent_id: ", "  processed: "} {
				if v, ok := strings.CutPrefix(l, key); ok {
					line = append(line, strings.TrimSpace(v))
				}
			}
		}
		got = append(got, strings.Join(line, " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
}

// Observations that a person changed while nobody looked are kept, and the
// file is put together again from all intents.
func TestObservationsOfAllComeBack(t *testing.T) {
	d := newFixture(t)
	a, b := sample(), sample()
	b.Intent.ID = "other"
	b.Tasks, b.Reviews, b.History = nil, nil, nil
	d.write(a)
	d.write(b)
	want := d.text(layout.Observations)
	d.put(layout.Observations, "- mine\n")
	d.reopen()
	d.edits(a, b)
	a.Seq++
	if problems := d.write(a); len(problems) != 1 || !kept(d, "- mine") {
		t.Errorf("got problems %v", problems)
	}
	if d.Projected("other") != 0 {
		t.Error("the other intent is not written again")
	}
	d.write(b)
	if diff := cmp.Diff(want, d.text(layout.Observations)); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
}

func TestSecondReviewOfAnAttempt(t *testing.T) {
	d := newFixture(t)
	v := sample()
	v.Reviews = append(v.Reviews, v.Reviews[0])
	v.Reviews[1].Verdict = forge.VerdictApproved
	d.write(v)
	if !strings.Contains(d.text("reviews/fix-login-001-1.yaml"), "verdict: rejected") ||
		!strings.Contains(d.text("reviews/fix-login-001-1.2.yaml"), "verdict: approved") {
		t.Error("a review is missing")
	}
	d.reopen()
	v.Seq++
	v.Reviews = v.Reviews[:1]
	d.write(v)
	if exists(t, d.file("reviews/fix-login-001-1.2.yaml")) {
		t.Error("the second review is left")
	}
}

func TestWriteRefusesWhatIsNoID(t *testing.T) {
	d := newFixture(t)
	v := sample()
	v.Intent.ID = "../../x"
	if _, err := d.Write(v); err == nil {
		t.Error("got no error")
	}
}

func TestIndexSurvivesATornLine(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	f, err := os.OpenFile(d.file(layout.Index), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"path":"intents/fix-lo`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	before := d.inodes()
	d.reopen()
	if d.Projected("fix-login") != v.Seq {
		t.Error("the index was lost")
	}
	d.write(v)
	d.reopen()
	if inputs, problems := d.edits(v); len(inputs)+len(problems) > 0 {
		t.Errorf("got %v %v", inputs, problems)
	}
	for name, info := range d.inodes() {
		if !os.SameFile(before[name], info) {
			t.Errorf("%s was written anew", name)
		}
	}
}

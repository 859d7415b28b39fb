package forgedir

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// A person edits for minutes what was replaced several times meanwhile.
func TestEditsOfAnOlderVersion(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	old := d.text(fixLogin)
	for seq := uint64(8); seq < 12; seq++ {
		v.Seq = seq
		v.Summary.Status, v.Summary.Waiting, v.Summary.Plan = forge.StatusExecuting, "", ""
		v.Summary.Reason = fmt.Sprint("attempt ", seq)
		v.Intent.Labels = append(v.Intent.Labels, "more")
		d.write(v)
	}
	d.save(fixLogin, strings.Replace(old, "Old accounts too?\n    answer: null", "Old accounts too?\n    answer: all", 1))
	for range 2 {
		inputs, problems := d.edits(v)
		if len(inputs) != 1 || len(problems) > 0 {
			t.Fatalf("got %v %v", inputs, problems)
		}
		if got := describe(inputs[0].Events[0]); len(inputs[0].Events) != 1 || got != `answer 1 "Old accounts too?": "all"` {
			t.Errorf("got %v", got)
		}
		d.reopen()
	}
}

// So old that nobody knows what it looked like: what changes by itself is not
// taken for the person's.
func TestEditsOfAForgottenVersion(t *testing.T) {
	for _, tt := range []struct{ name, old, text, want string }{
		{"title", "title: Mend", "title: Repair", `edit title="Repair the login check"`},
		{"answer", "too?\n    answer: null", "too?\n    answer: all", `answer 1 "Old accounts too?": "all"`},
		{"nothing", "title:", "# mine\ntitle:", ""},
		{"approval of an older plan", "status: proposed", "status: approved", "the plan changed since this version of the file was written"},
		{"origin", "system: draft", "system: other", "cannot be changed here; title, body, type, risk, answers and status: approved can"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			v.Intent.Type = ""
			d.write(v)
			mine := strings.Replace(d.text(fixLogin), tt.old, tt.text, 1)
			yes := "simple"
			v.Seq, v.Intent.Type, v.Summary.Reason, v.Summary.Plan = 8, "fix", "something new", "aaaa"
			v.Intent.Clarifications = append(v.Intent.Clarifications, forge.Clarification{Question: "Why?", Answer: &yes})
			d.write(v)
			d.save(fixLogin, mine)
			if err := os.RemoveAll(d.file(layout.Bases)); err != nil {
				t.Fatal(err)
			}
			inputs, problems := d.edits(v)
			got := ""
			for _, in := range inputs {
				got += describe(in.Events[0])
				if _, err := d.Decided(in, rulings(in, forge.Applied)); err != nil || len(in.Events) != 1 {
					t.Errorf("%v %v", in, err)
				}
			}
			for _, p := range problems {
				got += p.Reason
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			d.write(v)
			if len(problems) == 0 && !kept(d, mine) {
				t.Error("the person's version was not kept")
			}
		})
	}
}

// What was changed elsewhere meanwhile is not changed back by an old version.
func TestEditsOfAnOlderVersionKeepWhatIsNewer(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair") // by hand
	inputs, _ := d.edits(v)
	if _, err := d.Decided(inputs[0], rulings(inputs[0], forge.Applied)); err != nil {
		t.Fatal(err)
	}
	v.Seq, v.Intent.Title = 8, "Repair the login check"
	d.write(v)
	for _, title := range []string{"Heal the login check", "Save the login check"} { // by command
		old := d.text(fixLogin)
		v.Seq++
		v.Intent.Title, v.Intent.Body, v.Intent.Type, v.Intent.Risk = title, "New.\n", "test", forge.RiskHigh
		d.write(v)
		d.save(fixLogin, strings.Replace(old, "too?\n    answer: null", "too?\n    answer: all", 1))
		inputs, problems := d.edits(v)
		if len(problems) > 0 || len(inputs) != 1 || len(inputs[0].Events) != 1 || forge.As[*forge.Answer](inputs[0].Events[0].Message) == nil {
			t.Errorf("got %v %v", inputs, problems)
		}
		if _, err := d.Decided(inputs[0], rulings(inputs[0], forge.Ignored)); err != nil {
			t.Fatal(err)
		}
		d.write(v) // without the answer, since it was ignored
		if !strings.Contains(d.text(fixLogin), "too?\n    answer: null") {
			t.Errorf("the file does not say what is true:\n%s", d.text(fixLogin))
		}
	}
}

func TestEditsThatChangeBeforeTheyAreDecided(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair")
	first, _ := d.edits(v)
	d.replace(fixLogin, "title: Repair", "title: Heal")
	if _, err := d.Decided(first[0], rulings(first[0], forge.Applied)); err != nil {
		t.Fatal(err)
	}
	v.Seq, v.Intent.Title = 8, "Repair the login check"
	d.write(v)
	second, _ := d.edits(v)
	if len(second) != 1 || describe(second[0].Events[0]) != `edit title="Heal the login check"` {
		t.Errorf("got %v", second)
	}
}

func TestApprovals(t *testing.T) {
	const readIt = "status: the plan changed since this version of the file was written " +
		"(read it with pfl-forge show fix-login, then run pfl-forge approve fix-login, or undo the edit)"
	for _, tt := range []struct {
		name   string
		change func(*fixture, *forge.View)
		want   string
	}{
		{"waiting", func(*fixture, *forge.View) {}, "approve 9f2c"},
		{"another plan meanwhile", func(_ *fixture, v *forge.View) { v.Summary.Plan = "aaaa" }, readIt},
		{"a plan meanwhile", func(d *fixture, _ *forge.View) {
			d.replace(fixLogin, "plan: 9f2c\n", "")
			d.replace(fixLogin, "revision: 7\n", "revision: 3\n")
		}, readIt},
		{"nobody knows which version it was, but the plan", func(d *fixture, _ *forge.View) {
			if err := os.RemoveAll(d.file(layout.Cache)); err != nil {
				d.t.Fatal(err)
			}
			d.reopen()
		}, "approve 9f2c"},
		{"approved meanwhile", func(_ *fixture, v *forge.View) {
			v.Summary.Status, v.Summary.Waiting = forge.StatusExecuting, ""
		}, ""},
		{"done meanwhile", func(_ *fixture, v *forge.View) {
			v.Summary.Status, v.Summary.Waiting = forge.StatusDone, ""
		}, ""},
		{
			"a question meanwhile", func(_ *fixture, v *forge.View) { v.Summary.Waiting = forge.WaitingClarification },
			"status: does not wait for an approval; it is proposed (set it back to proposed)",
		},
		{"cancelled meanwhile", func(_ *fixture, v *forge.View) {
			v.Summary.Status, v.Summary.Waiting = forge.StatusCancelled, ""
		}, "status: does not wait for an approval; it is cancelled (set it back to cancelled)"},
		{"failed meanwhile", func(_ *fixture, v *forge.View) {
			v.Summary.Status, v.Summary.Waiting = forge.StatusBlocked, forge.WaitingFailed
		}, "status: does not wait for an approval; it is blocked (run pfl-forge retry fix-login)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			d.replace(fixLogin, "status: proposed", "status: approved")
			v.Seq++
			tt.change(d, &v)
			inputs, problems := d.edits(v)
			got := ""
			for _, in := range inputs {
				got += describe(in.Events[0])
			}
			for _, p := range problems {
				_, text, _ := strings.Cut(p.Error(), ": ")
				got += text
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

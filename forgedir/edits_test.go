package forgedir

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

const fixLogin = "intents/fix-login.yaml"

// describe says in a line what an event asks for.
func describe(e forge.Event) string {
	switch m := e.Message.(type) {
	case *forge.Edit:
		var parts []string
		for _, f := range []struct {
			name string
			to   *string
		}{{"title", m.Title}, {"body", m.Body}, {"type", m.Type}, {"risk", (*string)(m.Risk)}} {
			if f.to != nil {
				parts = append(parts, fmt.Sprintf("%s=%q", f.name, *f.to))
			}
		}
		return "edit " + strings.Join(parts, " ")
	case *forge.Answer:
		return fmt.Sprintf("answer %d %q: %q", m.Index, m.Question, m.Answer)
	case *forge.Approve:
		return "approve " + m.Plan
	default:
		return "something else"
	}
}

func TestEdits(t *testing.T) {
	const undo = " (undo it, or remove the file to have it written again)"
	const fixed = "cannot be changed here; title, body, type, risk, answers and status: approved can" + undo
	const status = "9: status: can only be set to approved here; it is proposed "
	const mend = " (fix it, or remove the file to have it written again)"
	const between = "type: fix\nsource: human\nrisk: med\n"
	const open = "question: Old accounts too?\n    answer: null"
	for _, tt := range []struct {
		name, old, text string
		want            []string // events, or problems
	}{
		{"title", "title: Mend the", "title: Repair the", []string{`edit title="Repair the login check"`}},
		{"body", "They should be.", "They must be.", []string{`edit body="Addresses are not checked.\n\nThey must be.\n"`}},
		{"body in another style", "body: |\n  Addresses are not checked.\n\n  They should be.", "body: short", []string{`edit body="short"`}},
		{"type", "type: fix", "type: feature", []string{`edit type="feature"`}},
		{"risk", "risk: med", "risk: high", []string{`edit risk="high"`}},
		{"answer", open, "question: Old accounts too?\n    answer: no", []string{`answer 1 "Old accounts too?": "no"`}},
		{"answer that looks like a number", open, "question: Old accounts too?\n    answer: 1e3", []string{`answer 1 "Old accounts too?": "1e3"`}},
		{"answer of two lines", open, "question: Old accounts too?\n    answer: |\n      yes,\n      all", []string{`answer 1 "Old accounts too?": "yes,\nall\n"`}},
		{"another answer", "answer: RFC 5322", "answer: simple", []string{`answer 0 "Which rules?": "simple"`}},
		{"approval", "status: proposed", "status: approved", []string{"approve 9f2c"}},
		{"several", "risk: med\nstatus: proposed", "risk: low\nstatus: approved", []string{`edit risk="low"`, "approve 9f2c"}},
		{"a comment", "title:", "# mine\ntitle:", nil},
		{"quotes", "title: Mend the login check", `title: "Mend the login check"`, nil},
		{"a key taken out", "risk: med\n", "", nil},
		{"all keys of a question taken out", "- question: Old accounts too?\n    answer: null", "- question: Old accounts too?", nil},

		{"done", "status: proposed", "status: done", []string{status + "(set it back to proposed)"}},
		{"rejected", "status: proposed", "status: rejected", []string{status + "(run pfl-forge reject fix-login)"}},
		{"cancelled", "status: proposed", "status: cancelled", []string{status + "(run pfl-forge cancel fix-login)"}},
		{"executing", "status: proposed", "status: executing", []string{status + "(set it back to proposed)"}},
		{"one good, one bad", "title: Mend the", "status: done\ntitle: Repair the", []string{"10: status: duplicate key, first given on line 1" + mend}},
		{"good and bad", "type: fix\nsource: human", "type: test\nsource: system", []string{"7: source: " + fixed}},
		{"risk of another kind", "risk: med", "risk: medium", []string{`8: risk: is "medium"; it can be low, med or high` + undo}},
		{"no title", "title: Mend the login check", "title: ''", []string{"1: title: is empty" + undo}},
		{"title with control characters", "title: Mend the login check", `title: "a\eb"`, []string{
			"1: title: holds the control character U+001B; it must be one line of text" + undo,
		}},
		{"no body", "body: |\n  Addresses are not checked.\n\n  They should be.\n", "body: ' '\n", []string{"2: body: is empty" + undo}},
		{"type of two words", "type: fix", "type: A fix", []string{`6: type: is "A fix"; a type must be one lower-case word` + undo}},
		{"depends_on", "- add-tests", "- other", []string{"14: depends_on: " + fixed}},
		{"tasks", "- fix-login-001", "- fix-login-002", []string{"35: tasks: " + fixed}},
		{"created_at", "created_at: 2026", "created_at: 1970", []string{"24: created_at: " + fixed}},
		{"origin", "system: draft", "system: other", []string{"22: origin: " + fixed}},
		{"plan", "plan: 9f2c", "plan: 0000", []string{"36: plan: " + fixed}},
		{"an id", "title:", "id: other\ntitle:", []string{"1: id: unknown key; known keys are " + knownKeys + mend}},
		{"unknown key", "labels:", "lables:", []string{`15: lables: unknown key; did you mean "labels"?` + mend}},
		{"duplicate key", "type: fix\n", "type: fix\ntype: test\n", []string{"7: type: duplicate key, first given on line 6" + mend}},
		{"second document", "plan: 9f2c", "---\nplan: 9f2c", []string{"36: holds a second document; only one is allowed" + mend}},
		{"not YAML", "labels:\n", "labels: [\n", []string{"15: is not valid YAML: did not find expected node content" + mend}},
		{"not UTF-8", "They should", "They \xff should", []string{"5: is not UTF-8" + mend}},
		{"alias", "title: Mend the login check", "title: &a Mend", []string{"1: title: has an anchor (&a); anchors are not allowed" + mend}},
		{"conflict markers", "type: fix\n", "<<<<<<< mine\ntype: fix\n=======\ntype: test\n>>>>>>> theirs\n", []string{
			"6: contains merge conflict markers (resolve the conflict and remove the markers)",
		}},
		{"an answer taken back", "answer: RFC 5322", "answer: null", []string{"31: clarifications[0].answer: an answer cannot be taken back" + undo}},
		{"a blank answer", open, "question: Old accounts too?\n    answer: ' '", []string{"33: clarifications[1].answer: is empty (write the answer, or null)"}},
		{"another question", "question: Old accounts too?", "question: New accounts too?", []string{
			"32: clarifications[1].question: cannot be changed; only the answer can" + undo,
		}},
		{"approval and another body", "should be.\n" + between + "status: proposed", "must be.\n" + between + "status: approved", []string{
			"9: status: cannot be approved together with a changed body: the plan is for the old one " +
				"(leave the status as it is until there is a plan for the new body)",
		}},
		{"no revision", "revision: 7\n", "", []string{
			"36: revision: is missing: it is the file's last line, so the file may be cut off " +
				"(if it is complete, add the line revision: 7; or remove the file to have it written again)",
		}},
		{"a question more", "tasks:", "  - question: Why?\n    answer: because\ntasks:", []string{
			"26: clarifications: questions cannot be added or removed" + undo,
		}},
		{"another parameter", "question: Old accounts too?", "question: Old accounts too?\n    param: X", []string{
			"33: clarifications[1].param: cannot be changed; only the answer can" + undo,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			d.replace(fixLogin, tt.old, tt.text)
			mine := d.text(fixLogin)
			inputs, problems := d.edits(v)
			var got []string
			for _, in := range inputs {
				for _, e := range in.Events {
					got = append(got, describe(e))
					if e.To != v.Summary.Key || e.Actor != "person" || e.ID == "" {
						t.Errorf("event %+v", e)
					}
				}
			}
			for _, p := range problems {
				got = append(got, strings.TrimPrefix(p.Error(), ".forge/intents/fix-login.yaml:"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			v.Seq++
			v.Summary.Activity, v.Summary.Reason = "", "something new"
			d.write(v)
			if edited := len(inputs)+len(problems) > 0; edited && d.text(fixLogin) != mine {
				t.Error("an edit that was not decided was overwritten")
			} else if !edited && d.text(fixLogin) == mine {
				t.Error("the file was not written")
			}
		})
	}
}

// knownKeys lists the keys of an intent's file, sorted.
var knownKeys = func() string {
	var keys []string
	for _, v := range new(document.Intent).Values() {
		keys = append(keys, v.Name)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}()

func TestEditsThatAreDecided(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "# do it soon\ntitle: Repair")
	mine := d.text(fixLogin)
	inputs, _ := d.edits(v)
	if again, _ := d.edits(v); len(again) != 1 || again[0].Events[0].ID != inputs[0].Events[0].ID {
		t.Errorf("the same edit made other events: %v", again)
	}
	if _, err := d.Decided(inputs[0], rulings(inputs[0], forge.Applied)); err != nil {
		t.Fatal(err)
	}
	v.Seq, v.Intent.Title = 8, *forge.As[*forge.Edit](inputs[0].Events[0].Message).Title
	if again, problems := d.edits(v); len(again)+len(problems) > 0 {
		t.Errorf("decided twice: %v %v", again, problems)
	}
	d.write(v)
	if text := d.text(fixLogin); !strings.HasPrefix(text, "title: Repair") || !strings.HasSuffix(text, "revision: 8\n") {
		t.Errorf("the file was not written:\n%s", text)
	}
	kept := d.under(layout.Kept)
	if len(kept) != 1 || d.text(kept[0]) != mine {
		t.Errorf("the comment is lost: %v", kept)
	}
}

func TestPlainEditsLeaveNothingBehind(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair")
	inputs, _ := d.edits(v)
	if _, err := d.Decided(inputs[0], rulings(inputs[0], forge.Applied)); err != nil {
		t.Fatal(err)
	}
	v.Seq, v.Intent.Title = 8, *forge.As[*forge.Edit](inputs[0].Events[0].Message).Title
	d.write(v)
	if kept := d.under(layout.Kept); len(kept) > 0 {
		t.Errorf("kept %v", kept)
	}
}

// A crash after the decision: the next run finds that there is nothing to do.
func TestEditsThatWereDecidedBeforeACrash(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair")
	v.Seq, v.Intent.Title = 8, "Repair the login check"
	d.reopen()
	if inputs, problems := d.edits(v); len(inputs)+len(problems) > 0 {
		t.Errorf("got %v %v", inputs, problems)
	}
	if d.Projected("fix-login") == v.Seq {
		t.Error("nobody knows that the file has to be written")
	}
	d.write(v)
	if text := d.text(fixLogin); !strings.HasSuffix(text, "revision: 8\n") {
		t.Errorf("the file was not written:\n%s", text)
	}
}

func TestRefusedEditsStay(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair")
	d.replace(fixLogin, "status: proposed", "status: approved")
	mine := d.text(fixLogin)
	inputs, _ := d.edits(v)
	ruled := rulings(inputs[0], forge.Applied)
	ruled[1].Decision, ruled[1].Reason = forge.Refused, "the plan is another one now"
	want := []Problem{{
		Path: ".forge/intents/fix-login.yaml", Line: 9, Field: "status", Reason: "the plan is another one now",
		Hint: "title was imported; " + person.Undo,
	}}
	got, err := d.Decided(inputs[0], ruled)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	inputs, got = d.edits(v)
	if diff := cmp.Diff(want, got); diff != "" || len(inputs) > 0 {
		t.Errorf("the next scan: %v, problems (-want +got):\n%s", inputs, diff)
	}
	v.Seq, v.Intent.Title = 8, "Repair the login check"
	d.write(v)
	if d.text(fixLogin) != mine {
		t.Error("it was overwritten")
	}
	inputs, _ = d.edits(v) // of a new state, so asked again: only what is not done yet
	if len(inputs) != 1 || len(inputs[0].Events) != 1 || forge.As[*forge.Approve](inputs[0].Events[0].Message) == nil {
		t.Errorf("in a new state: %v", inputs)
	}
}

func TestIntentFilesThatAreNone(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.put("intents/unknown.yaml", "title: x\n")
	d.put("intents/Fix-Login.yaml", "title: x\n")
	d.put("intents/.fix-login.yaml.swp", "x")
	d.put("intents/fix-login.yaml~", "x")
	if err := syscall.Mkfifo(d.file("intents/fifo.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	inputs, problems := d.edits(v)
	want := []string{
		`Fix-Login.yaml: id: "Fix-Login" holds 'F' at position 1; only a-z, 0-9 and - are allowed ` +
			"(the file's name is the intent's id; remove it, and write new intents into .forge/intent-drafts)",
		"fifo.yaml: is a named pipe, not a regular file (put a regular file in its place, or remove it)",
		"unknown.yaml: there is no intent unknown (remove it; to ask for a new intent, write .forge/intent-drafts/unknown.md)",
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Error(), ".forge/intents/"))
	}
	if diff := cmp.Diff(want, got); diff != "" || len(inputs) > 0 {
		t.Errorf("got %v, problems (-want +got):\n%s", inputs, diff)
	}
}

func TestEditWithoutCacheIsComparedToThePresent(t *testing.T) {
	d := newFixture(t)
	v := sample()
	v.Intent.Type = ""
	d.write(v)
	d.replace(fixLogin, "title: Mend", "title: Repair")
	if err := os.RemoveAll(d.file(layout.Cache)); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	v.Seq, v.Intent.Type = 9, "fix" // judged after the file was written
	mine := d.text(fixLogin)
	d.write(v)
	if d.text(fixLogin) != mine {
		t.Error("an edit was overwritten unread")
	}
	inputs, problems := d.edits(v)
	if len(inputs) != 1 || len(problems) > 0 || describe(inputs[0].Events[0]) != `edit title="Repair the login check"` {
		t.Errorf("got %v %v", inputs, problems)
	}
}

// Files that hold exactly what we wrote are read once and then only looked at.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.edits(v)
	if d.files.Unchanged(fixLogin) {
		t.Error("a change within the same tick of the clock would not be seen")
	}
	old := v.Summary.CreatedAt
	if err := os.Chtimes(d.file(fixLogin), old, old); err != nil {
		t.Fatal(err)
	}
	d.edits(v)
	if !d.files.Unchanged(fixLogin) {
		t.Error("it would be read again")
	}
	d.replace(fixLogin, "title: Mend", "title: Heal")
	if inputs, _ := d.edits(v); len(inputs) != 1 {
		t.Error("an edit was not seen")
	}
}

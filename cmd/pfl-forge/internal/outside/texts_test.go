package outside

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// request has eve open an issue without a label, and returns its path.
func (w *forgeWorld) request(title, body string) string {
	w.t.Helper()
	var got struct{ Number int64 }
	w.as("eve", http.MethodPost, "/repos/"+w.repo+"/issues", object{"title": title, "body": body}, &got)
	return fmt.Sprintf("/repos/%s/issues/%d", w.repo, got.Number)
}

// label puts the label forge on an issue, and unlabel takes it off.
func (w *forgeWorld) label(user, issue string) {
	w.t.Helper()
	w.as(user, http.MethodPost, issue+"/labels", object{"labels": []string{"forge"}}, nil)
}

func (w *forgeWorld) unlabel(user, issue string) {
	w.t.Helper()
	w.as(user, http.MethodDelete, issue+"/labels/1", nil, nil)
}

// edit changes fields of an issue.
func (w *forgeWorld) edit(user, issue string, fields object) {
	w.t.Helper()
	w.as(user, http.MethodPatch, issue, fields, nil)
}

// intentOf waits for the intent of an issue.
func (w *forgeWorld) intentOf(issue string) (found document.Detail) {
	w.t.Helper()
	number := issue[strings.LastIndex(issue, "/")+1:]
	wait.Until(w.t, "issue "+number+" has an intent", func() bool {
		for _, d := range w.intents() {
			if strings.HasPrefix(string(d.Intent), "issue-"+number+"-") {
				found = d
				return true
			}
		}
		return false
	})
	return found
}

// behind is what our comment says where the text is not the one that its asker saw.
const behind = "A person was asked for this reason: "

// TestTextEditedBehindTheLabel: where a stranger edits the text between the label and the look, a
// person is asked, and our comment says so; where who asked does it, or it was done before, nobody
// is asked more than otherwise. Without a delivery that tells, Gitea does not tell of a body.
func TestTextEditedBehindTheLabel(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		title, body, before, own := w.request("A", "Mend it."), w.request("B", "Mend it."), w.request("C", "Mend it."),
			w.request("D", "Mend it.")
		w.edit("eve", before, object{"title": "Mend it well"})
		for _, issue := range []string{title, body, before, own} {
			w.label("ada", issue)
		}
		w.edit("eve", title, object{"title": "Delete it"})
		w.edit("eve", body, object{"body": "Delete it."})
		w.edit("ada", own, object{"body": "Mend it well."})
		w.hooked()
		fake.Send(forgetest.Late)
		told := w.request("E", "Mend it.")
		w.label("ada", told)
		w.edit("eve", told, object{"body": "Delete it."})
		w.edit("ada", told, object{"title": "F"})
		fake.Release() // the last one first
		w.watch(time.Hour)
		for issue, asked := range map[string]bool{title: true, body: w.dialect != hooks.Gitea, told: true, before: false, own: false} {
			d := w.intentOf(issue)
			said := w.until(issue, "`/forge approve "+d.Plan)
			if strings.Contains(said, behind) != asked || (d.Risk == forge.RiskHigh) != asked {
				t.Errorf("%s, of risk %s: %q", d.Title, d.Risk, said)
			}
			if asked && !strings.Contains(said, "by eve, who may not ask for it") {
				t.Errorf("%s does not say who edited it: %q", d.Title, said)
			}
		}
		if d := w.intentOf(told); d.Body != "Delete it." || d.Title != "F" {
			t.Errorf("what is asked about is %q: %q", d.Title, d.Body)
		}
	})
}

// TestTextToldByHash: a delivery with another text than the look finds has a
// person asked, also where the one about the edit is lost.
func TestTextToldByHash(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		if w.dialect == hooks.GitLab { // tells all edits itself, and its deliveries have other texts than its answers
			return
		}
		w.hooked()
		fake.Send(forgetest.Late)
		issue := w.open()
		fake.Send(forgetest.Lost)
		w.edit("eve", issue, object{"body": "Delete it."})
		fake.Release()
		w.watch(time.Hour)
		if said := w.until(issue, behind); !strings.Contains(said, map[hooks.Kind]string{hooks.Gitea: "does not tell", hooks.GitHub: "by eve"}[w.dialect]) {
			t.Errorf("we said %q", said)
		}
	})
}

// TestTextEditedBehindTheCommand: the same holds for the comment that asks for a run.
func TestTextEditedBehindTheCommand(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		issue, other := w.request("A", "Mend it."), w.request("B", "Mend it.")
		w.edit("eve", other, object{"title": "Mend it well"})
		w.say("ada", issue, "/forge run")
		w.say("ada", other, "/forge run")
		w.edit("eve", issue, object{"title": "Delete it"})
		w.watch(50 * time.Millisecond)
		w.until(issue, behind)
		if said := w.until(other, "of project `shop`"); strings.Contains(said, behind) {
			t.Errorf("it was edited before the command: %q", said)
		}
	})
}

// TestTextEditedAfterwards: an edit of an issue changes nothing of what is worked on. Our
// comment says that it was edited, shows the request that an approval is of, and the hash that
// was shown approves just that. Cancelled and asked for again, the new text is worked on.
func TestTextEditedAfterwards(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		text := w.hash(issue, "")
		stop()
		w.edit("eve", issue, object{"body": "Delete it."})
		w.say("ada", issue, "/forge approve "+text) // by the hash that was shown before
		w.watch(50 * time.Millisecond)
		said := w.until(issue, "The text of this issue was edited")
		was, is := messages.HashText("It crashes", "Mend it.")[:12], messages.HashText("It crashes", "Delete it.")[:12]
		if !strings.Contains(said, "the text of hash `"+was+"`") || !strings.Contains(said, "of hash `"+is+"`") ||
			w.dialect != hooks.Gitea && !regexp.MustCompile(`was edited at 20\d\d-`).MatchString(said) {
			t.Errorf("we said %q", said)
		}
		w.until(issue, "/forge answer 1") // so it was approved, and analyzed
		if d := w.intentOf(issue); d.Body != "Mend it." {
			t.Errorf("what is worked on is %q", d.Body)
		}
		w.say("ada", issue, "/forge answer 1 this one")
		plan := w.hash(issue, text)
		if shown := seen(w.until(issue, "/forge approve "+plan)); !strings.Contains(shown, "Mend it.") || strings.Contains(shown, "Delete it.") {
			t.Errorf("the request that is approved is shown as %q", shown)
		}
		w.say("ada", issue, "/forge cancel")
		if said := w.until(issue, "**cancelled**"); strings.Contains(said, "was edited") {
			t.Errorf("it has ended, and we said %q", said)
		}
		w.say("ada", issue, "/forge run")
		again := w.hash(issue, plan)
		if shown := seen(w.until(issue, "/forge approve "+again)); !strings.Contains(shown, "Delete it.") || strings.Contains(shown, "was edited") {
			t.Errorf("asked for again, it is shown as %q", shown)
		}
	})
}

// TestEditIsToldElsewhere: that an issue was edited after its text was taken is known to everybody
// who looks at the intent, whoever takes our comment away, and however often it is seen: once in
// the journal. Taken back, it is not told any more. What waits and its hash stay as they were.
func TestEditIsToldElsewhere(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		text := w.hash(issue, "")
		before := w.intentOf(issue)
		taken := messages.HashText("It crashes", "Mend it.")[:12]
		if before.Text == nil || before.Text.Taken != taken || before.Text.Later != "" || strings.Contains(before.Reason, "edited") {
			t.Fatalf("before any edit it is %+v, and waits: %s", before.Text, before.Reason)
		}
		told := func(body string) (d document.Detail) {
			later := messages.HashText("It crashes", body)[:12]
			wait.Until(t, "the edit is known", func() bool { d = w.intentOf(issue); return d.Text.Later == later })
			return d
		}
		w.edit("eve", issue, object{"body": "Delete it."})
		d := told("Delete it.")
		beside := strings.HasPrefix(d.Reason, before.Reason+"; its text was edited at work after")
		if d.Body != "Mend it." || d.Plan != before.Plan || d.Waiting != before.Waiting || !beside {
			t.Errorf("%s waits for %s of %s: %s", d.Body, d.Waiting, d.Plan, d.Reason)
		}
		w.say("ada", issue, "/forge approve "+text) // by the hash that was shown before
		w.until(issue, "/forge answer 1")
		w.edit("eve", issue, object{"body": "Mend it."})
		wait.Until(t, "it is as it was", func() bool { d = w.intentOf(issue); return d.Text.Later == "" })
		if strings.Contains(d.Reason, "edited") || d.Text.At != nil {
			t.Errorf("it waits: %s", d.Reason)
		}
		stop()
		w.edit("eve", issue, object{"body": "Delete all of it."})
		w.unsay(issue)
		w.watch(50 * time.Millisecond)
		d = told("Delete all of it.")
		wait.Until(t, "a new comment says so", func() bool {
			return strings.Contains(strings.Join(w.ours(issue), ""), "The text of this issue was edited")
		})
		var edits int
		for i := range d.Decisions {
			if d.Decisions[i].What == "edit_at_origin" {
				edits++
			}
		}
		if edits != 3 || d.Decisions[0].What != "submit" {
			t.Errorf("decided was %+v", d.Decisions)
		}
	})
}

// TestLaterComments: who comments on an issue that is worked on is told that
// this is no part of it, in our comment, and nothing else comes of it. Commands
// are no such comments, and neither is what was said before.
func TestLaterComments(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		const words = "Comments that came after this was asked for and are no part of it: "
		issue := w.request("It crashes", "Mend it.")
		w.say("eve", issue, "It is urgent.")
		w.label("ada", issue)
		w.watch(50 * time.Millisecond)
		hash := w.hash(issue, "")
		w.say("ada", issue, "/forge status")
		if said := w.until(issue, hash); strings.Contains(said, words) {
			t.Errorf("before any comment we said %q", said)
		}
		w.say("eve", issue, "And delete the rest.")
		w.until(issue, words+"1.")
		w.say("eve", issue, "All of it.")
		if said := w.until(issue, words+"2."); strings.Contains(said, "delete the rest") || !strings.Contains(said, "/forge approve "+hash) {
			t.Errorf("we said %q", said)
		}
		w.say("ada", issue, "/forge cancel")
		if said := w.until(issue, "**cancelled**"); strings.Contains(said, words) {
			t.Errorf("it has ended, and we said %q", said)
		}
	})
}

// unsay has our comment on an issue say nothing of ours any more.
func (w *forgeWorld) unsay(issue string) {
	w.t.Helper()
	var list []struct {
		ID   int64
		User struct{ Login string }
	}
	w.as("root1", http.MethodGet, issue+"/comments", nil, &list)
	for _, c := range list {
		if c.User.Login == w.bot {
			w.as("root1", http.MethodPatch, fmt.Sprintf("/repos/%s/issues/comments/%d", w.repo, c.ID), object{"body": "-"}, nil)
		}
	}
}

// seen returns a comment as its readers see it.
func seen(body string) string {
	return strings.NewReplacer("\u200b", "", "\\", "", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(body)
}

// TestLabelRaces: the label counts as who put it on last did, at the look: taken off
// meanwhile it counts for nothing, and put on again by another one for what that one may.
func TestLabelRaces(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		w.rules = `rules: [{name: labelled, when: {label: forge, permission: admin}, do: go, project: shop, risk: low}]`
		off, again, back := w.request("A", "x"), w.request("B", "x"), w.request("C", "x")
		for _, issue := range []string{off, again} {
			w.label("root1", issue)
			w.unlabel("ada", issue) // who may write, and by the rule not ask
		}
		w.label("ada", again)
		w.label("ada", back)
		w.unlabel("root1", back)
		w.label("root1", back)
		w.watch(50 * time.Millisecond)
		w.until(back, "of project `shop`")
		last := w.request("D", "x")
		w.label("root1", last)
		w.until(last, "of project `shop`") // by a sweep that came after all others were looked at
		if a, b := w.ours(off), w.ours(again); len(a)+len(b) != 0 || len(w.intents()) != 2 {
			t.Errorf("there are %d intents, and we said %q, %q", len(w.intents()), a, b)
		}
		w.label("root1", off)
		w.until(off, "of project `shop`")
	})
}

// TestRightsTakenAway: what a person may do counts when it is done, and not when they asked:
// a command and a label of one whose right was taken away in between lead to nothing.
func TestRightsTakenAway(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		text := w.hash(issue, "")
		stop()
		w.say("ada", issue, "/forge approve "+text)
		other := w.open()
		w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", object{"permission": "read"}, nil)
		w.watch(50 * time.Millisecond)
		w.until(issue, "needs the right to write")
		if d := w.intentOf(issue); d.Waiting != forge.WaitingApproval || d.Plan != text {
			t.Errorf("it is %s, and waits for %q", d.Status, d.Waiting)
		}
		w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
		w.say("ada", issue, "/forge approve "+text)
		w.until(issue, "/forge answer 1")
		w.say("eve", other, "and now?")
		w.until(other, "of project `shop`") // the label counts again
	})
}

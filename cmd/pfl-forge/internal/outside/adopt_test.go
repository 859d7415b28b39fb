package outside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestAdoptAtAForge: ada pushes to the branch of a pull request. Its task waits and
// names her commit; a commit that was not seen there is refused. By a comment she
// has hers become the change: it is verified, waits for the approval of another
// person since no recipe made it, stands in its own place with her as its author,
// and counts as approved at the forge by no one before. That is merged, and proved.
func TestAdoptAtAForge(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w := newPullWorld(t, "by: forge, method: squash")
	w.bot = "bot"
	issue := w.open()
	stop := w.gateway()
	again := func() { stop(); stop = w.gateway() }
	first := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	w.check(first.Head.SHA, "success")

	clone := t.TempDir()
	w.git("", "clone", "-q", "-b", first.Head.Ref, w.fake.Dir(w.repo), clone)
	if err := os.WriteFile(filepath.Join(clone, "note.txt"), []byte("noted\nby ada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git(clone, "commit", "-q", "-a", "-m", "and by me")
	w.git(clone, "push", "-q", "origin", "HEAD")
	hers := w.git(clone, "rev-parse", "HEAD")
	again()
	var held forge.Summary
	wait.Until(t, "the change is held", func() bool { held = w.intent(); return held.Waiting == forge.WaitingPull })
	if !strings.Contains(held.Reason, "pfl-forge retry "+string(held.Key.Intent)+" --adopt "+hers[:12]) {
		t.Errorf("the reason is %q", held.Reason)
	}
	other := forge.Event{ID: "other", To: held.Key, Actor: "ada", Message: &forge.Retry{Adopt: first.Head.SHA}}
	r, err := w.nats.Connect(t).Submissions.Ask(wait.Context(t), other)
	if err != nil || r.Decision != forge.Refused || !strings.Contains(r.Reason, hers[:12]) {
		t.Errorf("another commit: %+v, %v", r, err)
	}

	again() // which tells the present state at once, and no more than every 30 seconds from then on
	w.until(issue, "`/forge adopt "+hers[:12]+"`")
	w.say("ada", issue, "/forge adopt "+hers[:12])
	again()
	wait.Until(t, "it waits for approval", func() bool { return w.intent().Waiting == forge.WaitingApproval })
	again()
	w.until(issue, "changes that were made already, which are not shown here") // nor is their hash
	plan := w.intent().Plan
	w.say("ada", issue, "/forge approve "+plan)
	again()
	w.until(issue, "may not approve")
	by := forge.Event{ID: "approved", To: held.Key, Actor: "bob", Message: &forge.Approve{Plan: plan}}
	if r, err := w.nats.Connect(t).Submissions.Ask(wait.Context(t), by); err != nil || r.Decision != forge.Applied {
		t.Fatalf("another person approves: %+v, %v", r, err)
	}
	adopted := w.pull("has what became of her commit", func(p *pull) bool { return p.Head.SHA != hers })
	dir := w.fake.Dir(w.repo)
	if got := w.git(dir, "log", "-1", "--format=%an, %cn", adopted.Head.SHA); got != "ada, pfl-forge" {
		t.Errorf("it is by %s", got)
	}
	if got := w.git(dir, "show", adopted.Head.SHA+":note.txt"); got != "noted\nby ada" {
		t.Errorf("the file is %q", got)
	}
	w.check(adopted.Head.SHA, "success")
	w.reviewBy("root1", &adopted, "APPROVED", "Good.") // ada's would be that of who made it
	again()
	w.pull("is merged", func(p *pull) bool { return p.Merged })
	wait.Until(t, "the intent is done", func() bool { return w.intent().Status == forge.StatusDone })
	if got := w.git(dir, "show", "main:note.txt"); got != "noted\nby ada" {
		t.Errorf("main has %q", got)
	}
}

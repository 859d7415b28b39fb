package elsewhere_test

import (
	"errors"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

var implement = forge.Command{
	To: forge.Key{Project: "shop", Intent: "fix"}, Attempt: forge.Attempt{Step: forge.StepImplement, Task: "fix-001", Number: 1, Claim: 1},
}

// TestLeave: a cause that lasts leaves a command to others until they have had their time, and then it is answered that none can. A cause
// that may be the task's own leaves it once: a task that harms each replica on which it runs is not handed from one to the next.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		lasts    bool
		delivery int
		reason   forge.FailureReason
		left     bool
		want     forge.FailureReason
	}{
		{"no such program", true, 1, forge.FailMissingCLI, true, forge.FailMissingCLI},
		{"no such program, again and again", true, 7, forge.FailCLITooOld, true, forge.FailCLITooOld},
		{"no such program anywhere", true, 8, forge.FailMissingCLI, false, forge.FailReplica},
		{"no sandbox for this command anywhere", true, 8, forge.FailSandbox, false, forge.FailSandbox},
		{"no process could be started", false, 1, forge.FailCrashed, true, forge.FailCrashed},
		{"nor at another replica", false, 2, forge.FailCrashed, false, forge.FailCrashed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, heard := elsewhere.Listen(t.Context())
			f := &forge.Failure{Reason: c.reason}
			if err := heard.Leave(c.delivery, forge.StepImplement, f); err != nil {
				t.Errorf("left although nobody said so: %v", err)
			}
			why := errors.New("not here")
			elsewhere.NotHere(ctx, why, c.lasts)
			if err := heard.Leave(c.delivery, forge.StepImplement, f); errors.Is(err, why) != c.left || f.Reason != c.want {
				t.Errorf("got %v, and reason %s", err, f.Reason)
			}
			if err := heard.Leave(c.delivery, forge.StepImplement, nil); err != nil {
				t.Errorf("an attempt that did its job is left to others: %v", err)
			}
		})
	}
	ctx, heard := elsewhere.Listen(t.Context())
	elsewhere.NotHere(ctx, errors.New("no program"), true)
	if f := (&forge.Failure{Reason: forge.FailMissingCLI}); heard.Leave(100, forge.StepReflect, f) == nil || f.Reason != forge.FailMissingCLI {
		t.Error("a step of a project is answered, and no rule waits for a replica with it")
	}
	elsewhere.NotHere(t.Context(), errors.New("unheard"), true)
	if elsewhere.Listens(t.Context()) || (*elsewhere.Heard)(nil).Leave(1, forge.StepImplement, &forge.Failure{}) != nil {
		t.Error("where there is one replica only something is left to another one")
	}
}

// TestAvoid: the next attempt of a step that failed here for a reason that may be the replica's goes to another one, if there is one. A failure
// of the program itself says nothing of the replica, and what another replica does not take is begun here in the end.
func TestAvoid(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	failed := func(reason forge.FailureReason) *elsewhere.Memory {
		m := &elsewhere.Memory{}
		m.Note(&implement, &forge.Failure{Reason: reason}, now)
		return m
	}
	next := implement
	next.Attempt.Number = 2
	review, addressed := next, next
	review.Attempt.Step = forge.StepReview
	addressed.Replica = "implementer-1"
	if err := failed(forge.FailRepository).Avoid(&next, 1, now); err == nil {
		t.Error("the next attempt goes back to where the last one failed")
	}
	again := failed(forge.FailRepository)
	again.Note(&next, nil, now)
	for name, err := range map[string]error{
		"a program that failed": failed(forge.FailCrashed).Avoid(&next, 1, now),
		"another step":          failed(forge.FailRepository).Avoid(&review, 1, now),
		"no other replica":      failed(forge.FailRepository).Avoid(&next, 5, now),
		"for this one alone":    failed(forge.FailRepository).Avoid(&addressed, 1, now),
		"long ago":              failed(forge.FailRepository).Avoid(&next, 1, now.Add(time.Hour)),
		"it worked since":       again.Avoid(&next, 1, now),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnswers: people hear why a command waits that no replica takes, not before it waited for a while, and not of the steps of a project. A
// command never goes round without a pause, and not much longer than that takes.
func TestAnswers(t *testing.T) {
	t.Parallel()
	merge, probe := implement, implement
	merge.Attempt.Step, probe.Attempt.Step = forge.StepMerge, forge.StepProbe
	if !elsewhere.Answers(&implement, 8, elsewhere.Patience) {
		t.Error("a command that waits is never answered")
	}
	if elsewhere.Answers(&implement, 8, time.Second) || elsewhere.Answers(&implement, 2, time.Hour) ||
		elsewhere.Answers(&merge, 8, time.Hour) || elsewhere.Answers(&probe, 8, time.Hour) {
		t.Error("it is answered too early, or for nobody")
	}
	var all time.Duration
	for delivery := 1; !elsewhere.Begins(delivery); delivery++ {
		pause := elsewhere.Pause(delivery)
		if pause < 200*time.Millisecond || pause > 5*time.Second {
			t.Errorf("the pause after delivery %d is %v", delivery, pause)
		}
		all += pause
	}
	if all < elsewhere.Patience || all > 2*elsewhere.Patience {
		t.Errorf("a command that is left to others comes back for good after %v", all)
	}
}

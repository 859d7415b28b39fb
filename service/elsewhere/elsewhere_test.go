package elsewhere_test

import (
	"context"
	"errors"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

var implement = forge.Command{
	To: forge.Key{Project: "shop", Intent: "fix"}, Attempt: forge.Attempt{Step: forge.StepImplement, Task: "fix-001", Number: 1, Claim: 1},
	Patience: elsewhere.Patience,
}

// TestLeave: a cause that lasts leaves a command to others until they have had their
// time, and then it is answered that none can. A cause that may be the task's own
// leaves it once: a task that harms each replica on which it runs is not handed from
// one to the next. How often the command came before for other reasons does not count.
func TestLeave(t *testing.T) {
	t.Parallel()
	early, late := elsewhere.Round{Delivery: 7, Waited: time.Hour}, elsewhere.Round{Delivery: 8, Waited: time.Minute}
	patient, old := implement, implement
	patient.Patience = 2 * time.Minute
	old.Patience = 0
	for _, c := range []struct {
		name   string
		lasts  bool
		cmd    *forge.Command
		round  elsewhere.Round
		reason forge.FailureReason
		left   bool
		want   forge.FailureReason
	}{
		{"no such program", true, &implement, elsewhere.Round{Delivery: 1}, forge.FailMissingCLI, true, forge.FailMissingCLI},
		{"no such program, again and again", true, &implement, early, forge.FailCLITooOld, true, forge.FailCLITooOld},
		{"no such program anywhere", true, &implement, late, forge.FailMissingCLI, false, forge.FailReplica},
		{"it waits already", true, &patient, late, forge.FailMissingCLI, true, forge.FailMissingCLI},
		{"no sandbox for this command anywhere", true, &implement, late, forge.FailSandbox, false, forge.FailReplica},
		{"by rules that do not know the reason", true, &old, early, forge.FailSandbox, true, forge.FailSandbox},
		{"nor anywhere", true, &old, late, forge.FailSandbox, false, forge.FailSandbox},
		{"no process could be started", false, &implement, elsewhere.Round{Delivery: 1}, forge.FailCrashed, true, forge.FailCrashed},
		{"after it was turned away elsewhere", false, &implement, late, forge.FailCrashed, true, forge.FailCrashed},
		{"nor at another replica", false, &implement, elsewhere.Round{Delivery: 2, GivenBack: true}, forge.FailCrashed, false, forge.FailCrashed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, heard := elsewhere.Listen(t.Context(), nil)
			f := &forge.Failure{Reason: c.reason}
			if err := heard.Leave(c.cmd, c.round, f); err != nil || heard.Once() {
				t.Errorf("left although nobody said so: %v", err)
			}
			why := errors.New("not here")
			elsewhere.NotHere(ctx, why, c.lasts)
			if err := heard.Leave(c.cmd, c.round, f); errors.Is(err, why) != c.left || f.Reason != c.want || heard.Once() == c.lasts {
				t.Errorf("got %v, and reason %s", err, f.Reason)
			}
			if err := heard.Leave(c.cmd, c.round, nil); err != nil {
				t.Errorf("an attempt that did its job is left to others: %v", err)
			}
		})
	}
	ctx, heard := elsewhere.Listen(t.Context(), func(context.Context) error { return errors.New("the disk is full") })
	elsewhere.NotHere(ctx, errors.New("no program"), true)
	reflect := implement
	reflect.Attempt.Step = forge.StepReflect
	if f := (&forge.Failure{Reason: forge.FailMissingCLI}); heard.Leave(&reflect, late, f) == nil || f.Reason != forge.FailMissingCLI {
		t.Error("a step of a project is answered, and no rule waits for a replica with it")
	}
	if err := elsewhere.Unwell(ctx); err == nil {
		t.Error("it is well")
	}
	elsewhere.NotHere(t.Context(), errors.New("unheard"), true)
	none := (*elsewhere.Causes)(nil)
	if elsewhere.Listens(t.Context()) || none.Once() || none.Leave(&implement, late, &forge.Failure{}) != nil || elsewhere.Unwell(t.Context()) != nil {
		t.Error("where there is one replica only something is left to another one")
	}
}

// TestAvoid: the next attempt of a step that failed here for a reason that may be the
// replica's goes to another one, if there is one. A failure of the program itself says
// nothing of the replica, and what another replica does not take is begun here in the end.
func TestAvoid(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	failed := func(reason forge.FailureReason) *elsewhere.Memory {
		m := &elsewhere.Memory{}
		m.Record(&implement, &forge.Failure{Reason: reason}, now)
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
	unwell := &elsewhere.Memory{}
	f := unwell.Unwell(&implement, errors.New("no space"), now)
	if f.Reason != forge.FailUnwell || f.Message != "no space" || unwell.Avoid(&next, 1, now) == nil {
		t.Errorf("the next attempt goes back to where there was no space: %+v", f)
	}
	old := implement
	old.Patience = 0
	if f := unwell.Unwell(&old, errors.New("no space"), now); f.Reason != forge.FailInterrupted {
		t.Errorf("rules that do not know the reason are told %+v", f)
	}
	again := failed(forge.FailRepository)
	again.Record(&next, nil, now)
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

// TestAnswers: people hear why a command waits that no replica takes, not before it waited for
// as long as it says, and not of the steps of a project, nor where the rules do not know that
// answer. A command never goes round without a pause, and not much longer than that takes.
func TestAnswers(t *testing.T) {
	t.Parallel()
	merge, probe, old, patient := implement, implement, implement, implement
	merge.Attempt.Step, probe.Attempt.Step = forge.StepMerge, forge.StepProbe
	old.Patience, patient.Patience = 0, 15*time.Minute
	late := elsewhere.Round{Delivery: 8, Waited: time.Hour}
	if !elsewhere.Answers(&implement, elsewhere.Round{Delivery: 8, Waited: elsewhere.Patience}) || !elsewhere.Answers(&patient, late) {
		t.Error("a command that waits is never answered")
	}
	for name, early := range map[string]bool{
		"at once":            elsewhere.Answers(&implement, elsewhere.Round{Delivery: 8, Waited: time.Second}),
		"by the first":       elsewhere.Answers(&implement, elsewhere.Round{Delivery: 2, Waited: time.Hour}),
		"that waits already": elsewhere.Answers(&patient, elsewhere.Round{Delivery: 50, Waited: time.Minute}),
		"a merge":            elsewhere.Answers(&merge, late),
		"a probe":            elsewhere.Answers(&probe, late),
		"by older rules":     elsewhere.Answers(&old, late),
	} {
		if early {
			t.Errorf("%s: it is answered too early, or for nobody", name)
		}
	}
	for cmd, bounds := range map[*forge.Command][2]time.Duration{&implement: {elsewhere.Patience, 5 * time.Second}, &old: {elsewhere.Patience, 5 * time.Second}} {
		var all time.Duration
		for delivery := 1; !elsewhere.Begins(delivery); delivery++ {
			pause := elsewhere.Pause(cmd, delivery)
			if pause < 200*time.Millisecond || pause > bounds[1] {
				t.Errorf("the pause after delivery %d is %v", delivery, pause)
			}
			all += pause
		}
		if all < bounds[0] || all > 2*bounds[0] {
			t.Errorf("a command that is left to others comes back for good after %v", all)
		}
	}
	if pause := elsewhere.Pause(&patient, 100); pause != time.Minute {
		t.Errorf("a command that waits for long costs a replica something every %v", pause)
	}
	if hold := elsewhere.Hold(&patient); hold > time.Second {
		t.Errorf("a replica that is not well keeps a command from the others for %v", hold)
	}
}

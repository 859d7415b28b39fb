package dispatch

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pause"
)

func turn(b forge.Budget) *Turn {
	return &Turn{
		Key: forge.Key{Project: "p", Intent: "a"}, Now: time.Unix(0, 0).UTC(), Run: 1, Budget: b,
		ClaimTimeout: time.Minute, Pause: &pause.State{}, Effects: &forge.Effects{},
	}
}

func implement(number int) *forge.Command {
	return &forge.Command{Attempt: forge.Attempt{Task: "a-001", Step: forge.StepImplement, Number: number, Claim: 1}}
}

// Without a budget and a pause, a command is issued at once.
func TestSend(t *testing.T) {
	var s State
	x := turn(forge.Budget{})
	c := implement(1)
	c.Replica = "r1"
	s.Send(x, c)
	if len(x.Effects.Commands) != 1 || !s.Outbox.Wants(c.Attempt) || !s.Outbox.HasTimer(ClaimKey(c.Attempt)) {
		t.Errorf("the effects are %+v", x.Effects)
	}
}

// What a pause holds is sent when it ends, and what was open is withdrawn.
func TestPauseHolds(t *testing.T) {
	var s State
	x := turn(forge.Budget{})
	s.Send(x, implement(1))
	x.Pause.Person = true
	open, _ := s.HoldBack(x, false)
	if len(open) != 1 || len(x.Effects.Cancels) != 1 || !s.Expects(open[0]) {
		t.Errorf("open %v, effects %+v", open, x.Effects)
	}
	s.Send(x, implement(2))
	if len(s.Held) != 1 || len(s.Outbox.Commands) != 0 {
		t.Errorf("held %v, open %v", s.Held, s.Outbox.Commands)
	}
	x.Pause.Person = false
	s.Resume(x)
	if len(s.Held) != 0 || len(s.Outbox.Commands) != 1 {
		t.Errorf("held %v, open %v", s.Held, s.Outbox.Commands)
	}
}

// A budget of the intent's own is the project's to reserve as well, because its children share it.
func TestOwnBudget(t *testing.T) {
	var s State
	x := turn(forge.Budget{CallUSD: 0.6})
	x.OwnUSD = 1
	s.Send(x, implement(1))
	s.Send(x, implement(2))
	if len(x.Effects.Commands) != 0 || len(x.Effects.Outbox) != 2 || len(s.Waiting) != 2 {
		t.Fatalf("waiting %v, effects %+v", s.Waiting, x.Effects)
	}
	if m := forge.As[*forge.ReserveBudget](x.Effects.Outbox[0].Message); m == nil || m.OwnUSD != 1 || m.USD != 0.6 {
		t.Errorf("it asks %+v", m)
	}
	x.Recipe = true
	s.Send(x, implement(3))
	if len(x.Effects.Commands) != 1 {
		t.Error("a recipe waits for money")
	}
}

// A budget that intents share is the project's to reserve.
func TestSharedBudget(t *testing.T) {
	var s State
	x := turn(forge.Budget{DayUSD: 10, CallUSD: 2})
	s.Send(x, implement(1))
	if len(x.Effects.Commands) != 0 || len(x.Effects.Outbox) != 1 {
		t.Fatalf("the effects are %+v", x.Effects)
	}
	if s.Answered(x, &forge.BudgetReserved{Attempt: implement(2).Attempt, USD: 2, Number: 1}) {
		t.Error("an answer to no question was taken")
	}
	if s.Answered(x, &forge.BudgetReserved{Attempt: implement(1).Attempt, USD: 2}) {
		t.Error("an answer to an earlier question was taken")
	}
	if !s.Answered(x, &forge.BudgetReserved{Attempt: implement(1).Attempt, USD: 1.5, Number: 1}) || s.Outbox.Reserved(implement(1).Attempt) != 1.5 {
		t.Errorf("open: %+v", s.Outbox.Commands)
	}
	s.Send(x, implement(2))
	s.Answered(x, &forge.BudgetReserved{Attempt: implement(2).Attempt, Reason: "it is used up", Number: s.Messages})
	if len(x.Refused) != 1 {
		t.Errorf("refused %v", x.Refused)
	}
}

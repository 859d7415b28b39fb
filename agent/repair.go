package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Once is a call without a second try: Agent.Run, but the answer may be anything.
type Once func(ctx context.Context, call Call, sink func(Event)) (Outcome, error)

// Answered runs a call, and looks at its answer. If that is missing or wrong, the
// agent is told so, once, in the same session. The usage is that of both calls, and
// the limits hold for both together.
//
// Every back end whose calls answer by a schema runs them through this.
func Answered(ctx context.Context, call Call, sink func(Event), once Once) (Outcome, error) {
	out, err := once(ctx, call, sink)
	if err == nil {
		err = checked(&call, out.Answer)
	}
	f, wrong := errors.AsType[*Failure](err)
	if !wrong || f.Reason != forge.FailInvalidOutput || len(call.Schema) == 0 || out.Session == "" {
		return out, err
	}
	again, ok := repair(call, out, f.Message)
	if !ok {
		return out, err
	}
	if sink != nil {
		sink(Event{Kind: EventText, Text: "asked to mend its answer: " + short(f.Message)})
	}
	second, err := once(ctx, again, after(out, sink))
	if err == nil {
		err = checked(&call, second.Answer)
	}
	f2, _ := errors.AsType[*Failure](err)
	if f2 != nil && (f2.Reason == forge.FailLostSession || f2.Reason == forge.FailInvalidOutput) {
		err = Fail(forge.FailInvalidOutput, "%s; asked to mend it: %s", f.Message, f2.Message)
	}
	return join(out, second), err
}

// checked returns what is wrong with an answer.
func checked(call *Call, answer []byte) error {
	if len(call.Schema) == 0 {
		return nil
	}
	if len(answer) == 0 {
		return invalid("is missing")
	}
	if spec := Spec(call.Role); spec.Check != nil {
		return spec.Check(answer)
	}
	return nil
}

// repair returns the call that asks for a better answer, unless the first one left
// nothing of its limits.
func repair(call Call, first Outcome, wrong string) (Call, bool) {
	call.Session = Session{ID: first.Session, Resume: true}
	call.Prompt = repairPrompt(wrong)
	l := &call.Limits
	if l.BudgetUSD > 0 {
		if l.BudgetUSD -= first.Usage.CostUSD; l.BudgetUSD <= 0 {
			return call, false
		}
	}
	if l.Wall > 0 {
		if l.Wall -= first.Duration; l.Wall < time.Second {
			return call, false
		}
	}
	return call, true
}

func repairPrompt(wrong string) string {
	return "Your answer could not be used: " + strings.TrimSpace(wrong) + "\n\n" +
		"Do no further work. Give the same answer again, complete, in the form that the schema asks for."
}

// after passes on the events of a second call, whose usage follows that of the first.
func after(first Outcome, sink func(Event)) func(Event) {
	if sink == nil {
		return nil
	}
	return func(e Event) {
		if e.Kind == EventUsage {
			e.Usage = e.Usage.Add(first.Usage)
		}
		sink(e)
	}
}

// join returns the outcome of two calls of one session.
func join(a, b Outcome) Outcome {
	b.Usage = a.Usage.Add(b.Usage)
	b.Duration += a.Duration
	if b.Model == "" {
		b.Model = a.Model
	}
	tools := map[string]int{}
	for _, m := range []map[string]int{a.Tools, b.Tools} {
		for name, n := range m {
			tools[name] += n
		}
	}
	b.Tools = tools
	for _, f := range b.Files {
		a.Files = appendNew(a.Files, f)
	}
	b.Files = a.Files
	return b
}

package agent

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// RunFunc makes a call without any repair. It need not check the answer: if there is
// none, Outcome.Answer may be nil without an error.
type RunFunc func(ctx context.Context, call Call, sink func(Event)) (Outcome, error)

// RunWithRepair makes a call with run and checks its answer. If the answer is missing
// or wrong, or the call failed as FailInvalidOutput, the agent is told so, once, in the
// same session. The usage is the sum of both calls, and the limits hold for both
// together.
//
// Every back end whose calls answer by a schema runs them through this function.
func RunWithRepair(ctx context.Context, call Call, sink func(Event), once RunFunc) (Outcome, error) {
	out, err := once(ctx, call, sink)
	f := checkOutcome(&call, &out, err)
	if f == nil || f.Reason != forge.FailInvalidOutput {
		return out, asError(f)
	}
	again, ok := repairCall(call, &out, f.Message)
	if !ok {
		return out, f
	}
	if sink != nil {
		sink(Event{Kind: EventText, Text: "asked to correct its answer: " + short(f.Message)})
	}
	second, err := once(ctx, again, offsetUsage(out, sink))
	f2 := checkOutcome(&call, &second, err)
	switch {
	case f2 == nil:
	case f2.Reason == forge.FailLostSession:
		f2 = Fail(forge.FailInvalidOutput, "%s; it has no session in which it could correct that", f.Message)
	case f2.Reason == forge.FailInvalidOutput && f2.Message == f.Message:
		f2 = Fail(forge.FailInvalidOutput, "%s, also when it was asked to correct that", f.Message)
	case f2.Reason == forge.FailInvalidOutput:
		f2 = Fail(forge.FailInvalidOutput, "%s; after a correction: %s", f.Message, f2.Message)
	}
	return mergeOutcomes(out, second), asError(f2)
}

// checkOutcome returns why a call did not succeed: its error, a missing answer, or an
// answer that the role or the call itself refuses. Nil if it did.
func checkOutcome(call *Call, out *Outcome, err error) *Failure {
	switch {
	case err != nil:
		return AsFailure(err)
	case len(call.Schema) == 0:
		return nil
	case len(out.Answer) == 0:
		return invalid("there is none in the form of the schema; it said: %s", short(out.Text))
	}
	if spec := Spec(call.Role); spec.Check != nil {
		if err := spec.Check(out.Answer); err != nil {
			return AsFailure(err)
		}
	}
	if call.Check != nil {
		return AsFailure(call.Check(out.Answer))
	}
	return nil
}

// asError keeps a nil *Failure from becoming an error that is not nil.
func asError(f *Failure) error {
	if f == nil {
		return nil
	}
	return f
}

// repairCall returns the call that asks for a better answer, with the limits that are
// left. It returns false if the session cannot be resumed or nothing of a limit is
// left.
func repairCall(call Call, first *Outcome, wrong string) (Call, bool) {
	if first.Session == "" || len(call.Schema) == 0 {
		return call, false
	}
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

// repairPrompt returns the request to correct an answer, with the reason.
func repairPrompt(wrong string) string {
	return "Your answer could not be used: " + strings.TrimSpace(wrong) + "\n\n" +
		"Do no further work. Give the same answer again, complete, in the form that the schema asks for."
}

// offsetUsage returns a sink that adds the first call's usage to the usage events of
// the second, so that a viewer sees one growing total.
func offsetUsage(first Outcome, sink func(Event)) func(Event) {
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

// mergeOutcomes returns the outcome of two calls of one session: answer and text of b,
// and usage, duration, tools and files of both.
func mergeOutcomes(a, b Outcome) Outcome {
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
	for _, d := range b.Denied {
		a.Denied = appendNew(a.Denied, d)
	}
	b.Denied = a.Denied
	for _, f := range b.Files {
		a.Files = appendNew(a.Files, f)
	}
	b.Files = a.Files
	return b
}

package agent

import (
	"context"
	"strings"
	"time"
)

// Once is a call without a second try. A call that went well without an answer has
// an Outcome whose Answer is nil, and no error.
type Once func(ctx context.Context, call Call, sink func(Event)) (Outcome, error)

// Answered runs a call, and looks at its answer. If that is missing or wrong, the
// agent is told so, once, in the same session. The usage is that of both calls, and
// the limits hold for both together.
//
// Every back end whose calls answer by a schema runs them through this.
func Answered(ctx context.Context, call Call, sink func(Event), once Once) (Outcome, error) {
	out, err := once(ctx, call, sink)
	if err != nil {
		return out, err
	}
	f := checked(&call, &out)
	if f == nil {
		return out, nil
	}
	again, ok := repair(call, &out, f.Message)
	if !ok {
		return out, f
	}
	if sink != nil {
		sink(Event{Kind: EventText, Text: "asked to mend its answer: " + short(f.Message)})
	}
	second, err := once(ctx, again, after(out, sink))
	both := join(out, second)
	if err != nil {
		return both, err
	}
	if f2 := checked(&call, &second); f2 != nil {
		f2.Message = f.Message + "; asked to mend it: " + f2.Message
		return both, f2
	}
	return both, nil
}

// checked returns what is wrong with an answer.
func checked(call *Call, out *Outcome) *Failure {
	switch {
	case len(call.Schema) == 0:
		return nil
	case len(out.Answer) == 0:
		return invalid("there is none in the form of the schema; it said: %s", short(out.Text))
	}
	if spec := Spec(call.Role); spec.Check != nil {
		return AsFailure(spec.Check(out.Answer))
	}
	return nil
}

// repair returns the call that asks for a better answer, unless the first one left
// nothing of its limits.
func repair(call Call, first *Outcome, wrong string) (Call, bool) {
	if first.Session == "" {
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

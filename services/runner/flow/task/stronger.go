package task

import (
	"cmp"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Escalation decides how strongly the attempts of a task are made. The methods stand on a type of
// their own, which has no state.
type Escalation struct{ *Task }

// Stronger returns the model and effort that the next attempt of a step has in
// place of the configured ones: the step of the escalation for as many setbacks
// as the task has had in this run, or the last there is. It is nil before the
// first, and for a recipe, which has no model. The second of two changes, and
// what is made of it, has the model and effort that the project names for that.
func (t Escalation) Stronger(p *forge.Policy, in *forge.Intent, step forge.Step) *forge.Stronger {
	var list []forge.Stronger
	switch {
	case Makes(step):
		list = p.StrongerImplement
	case step == forge.StepReview || step == forge.StepJudge:
		list = p.StrongerReview
	}
	var s forge.Stronger
	if t.Rejections > 0 && len(list) > 0 {
		s = list[min(t.Rejections, len(list))-1]
	}
	if by := &p.BestOfTwo.By; step == forge.StepImplement && t.Round.Second {
		s.Model, s.Effort = cmp.Or(by.Model, s.Model), cmp.Or(by.Effort, s.Effort)
	}
	if s == (forge.Stronger{}) || in.Recipe != "" {
		return nil
	}
	return &s
}

// Setback counts evidence that what was made is not good enough, and records if
// what follows is made or judged in a stronger way than before.
func (t Escalation) Setback(x *Turn) {
	var said []string
	steps := []forge.Step{x.Strategy.Step(Implementing), x.Strategy.Step(Reviewing)}
	before := [...]*forge.Stronger{t.Stronger(x.Policy, x.Intent, steps[0]), t.Stronger(x.Policy, x.Intent, steps[1])}
	t.Rejections++
	for i, step := range steps {
		if s := t.Stronger(x.Policy, x.Intent, step); s != nil && (before[i] == nil || *s != *before[i]) {
			said = append(said, string(step)+" "+described(s))
		}
	}
	if len(said) > 0 {
		x.Adjust(rule.Stronger, t.ID, strings.Join(said, "; "))
	}
}

// described returns a step of an escalation in words.
func described(s *forge.Stronger) string {
	var parts []string
	if s.Model != "" {
		parts = append(parts, "with "+s.Model)
	}
	if s.Effort != "" {
		parts = append(parts, "with "+s.Effort+" effort")
	}
	return strings.Join(parts, " ")
}

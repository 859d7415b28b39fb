package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// DefaultMaxTurns is the value of calls.max_turns where a project names none.
	DefaultMaxTurns = 100
	// mostTurns is the largest value that it may have.
	mostTurns = 10_000
)

// Calls says how agents are called, whichever they are.
type Calls struct {
	// Effort says how much models are to think.
	Effort Effort `yaml:"effort"`
	// MaxTurns bounds the requests to the model in one call of an agent, 1 to 10000.
	// The review of a change that is given as files has one more for each of them.
	MaxTurns int `yaml:"max_turns"`
	// Escalate says what is called after a setback: a rejection, a failed
	// verify command or proof, or an attempt without a change.
	Escalate Escalate `yaml:"escalate"`
	// BestOfTwo says of which tasks two changes are made, one after the other,
	// and the better one is merged.
	BestOfTwo BestOfTwo `yaml:"best_of_two"`
}

// BestOfTwo says when a second change is made, and by whom.
type BestOfTwo struct {
	// When lists complex (tasks of high complexity), rejected (after the first
	// setback), both or neither.
	When []string `yaml:"when"`
	// Model makes the second one; empty means the configured one, for the back
	// end that is configured for implement.
	Model string `yaml:"model"`
	// Effort is how much it is to think.
	Effort Level `yaml:"effort"`
}

// policy returns it as the rules of the flow read it.
func (b *BestOfTwo) policy() forge.BestOfTwo {
	return forge.BestOfTwo{When: b.When, By: forge.Stronger{Model: b.Model, Effort: string(b.Effort)}}
}

// Escalate lists stronger calls by role, one for each setback of a task in a
// run. The last one holds for all further ones.
type Escalate struct {
	// Implement is for the steps that make a change.
	Implement []Stronger `yaml:"implement"`
	// Review is for the reviews of what was made again.
	Review []Stronger `yaml:"review"`
}

// Stronger is one step of an escalation.
type Stronger struct {
	// Model takes the place of the configured one, for the back end that is
	// configured for the role.
	Model string `yaml:"model"`
	// Effort takes the place of the configured level.
	Effort Level `yaml:"effort"`
}

// Steps returns the steps for implement and review as the rules of the flow read them.
func (e *Escalate) Steps() (implement, review []forge.Stronger) {
	for _, s := range e.Implement {
		implement = append(implement, forge.Stronger{Model: s.Model, Effort: string(s.Effort)})
	}
	for _, s := range e.Review {
		review = append(review, forge.Stronger{Model: s.Model, Effort: string(s.Effort)})
	}
	return implement, review
}

// mostStronger bounds the steps of an escalation.
const mostStronger = 5

// Level says how much a model is to think.
type Level string

// The levels, the least first.
const (
	LevelProgram Level = "" // the agent's program decides
	LevelLow     Level = "low"
	LevelMedium  Level = "medium"
	LevelHigh    Level = "high"
	LevelXHigh   Level = "xhigh"
	LevelMax     Level = "max"
)

// levels returns the words of all levels.
func levels() []string {
	return []string{
		string(LevelProgram), string(LevelLow), string(LevelMedium), string(LevelHigh), string(LevelXHigh), string(LevelMax),
	}
}

// Effort says how much models are to think in each kind of work.
type Effort struct {
	// Analyze is for the steps that understand a request.
	Analyze Level `yaml:"analyze"`
	// Implement is for the steps that make a change.
	Implement Level `yaml:"implement"`
	// Review is for review and judge.
	Review Level `yaml:"review"`
	// Reflect is for reflect, abstract and summarize.
	Reflect Level `yaml:"reflect"`
	// Complexity has levels that take the place of Implement for a task of that complexity.
	Complexity EffortByComplexity `yaml:"complexity"`
}

// EffortByComplexity has a level for each complexity of a task; an empty one
// leaves it to the role's.
type EffortByComplexity struct {
	// Low is for small fixes.
	Low Level `yaml:"low"`
	// Med is for tasks of the middle.
	Med Level `yaml:"med"`
	// High is for what the model complex does, too.
	High Level `yaml:"high"`
}

// of returns the level of a complexity.
func (e *EffortByComplexity) of(c forge.Complexity) Level {
	switch c {
	case forge.ComplexityLow:
		return e.Low
	case forge.ComplexityMed:
		return e.Med
	case forge.ComplexityHigh:
		return e.High
	}
	return LevelProgram
}

// role returns the level of a role, one of [RoleNames].
func (e *Effort) role(name string) Level {
	switch name {
	case "analyze":
		return e.Analyze
	case "implement":
		return e.Implement
	case "review":
		return e.Review
	}
	return e.Reflect
}

// For returns the level of a call of a role, for a command.
func (e *Effort) For(role string, c *forge.Command) Level {
	if s := c.Stronger; s != nil && s.Effort != "" {
		return Level(s.Effort)
	}
	if level := e.Complexity.of(c.Task.Complexity); role == "implement" && level != LevelProgram {
		return level
	}
	return e.role(role)
}

// TakesEffort reports whether a back end can be told how much to think. Gemini CLI and opencode
// cannot, and a recipe has no model. A program of the project's own is told, and does as it likes.
func TakesEffort(agent string) bool {
	return agent != AgentGemini && agent != AgentOpencode && agent != AgentRecipe
}

// EffortIgnored returns the keys of calls.effort, with their values, that have no effect
// because the back end that does that work, or stands in for the one that does, cannot be told.
func (p *Project) EffortIgnored(agent string) []string {
	if TakesEffort(agent) {
		return nil
	}
	var list []string
	add := func(key string, level Level) {
		if level != LevelProgram {
			list = append(list, fmt.Sprintf("calls.effort.%s (%s)", key, level))
		}
	}
	for _, role := range RoleNames() {
		second := role == "review" && p.SecondReviewer().Agent == agent
		if p.AgentFor(role) != agent && !second && !slices.Contains(p.Fallback, agent) {
			continue
		}
		add(role, p.Calls.Effort.role(role))
		if role == "implement" {
			add("complexity.low", p.Calls.Effort.Complexity.Low)
			add("complexity.med", p.Calls.Effort.Complexity.Med)
			add("complexity.high", p.Calls.Effort.Complexity.High)
		}
	}
	return list
}

// calls checks how agents are called.
func (c *checker) calls(p *Calls) {
	c.within("calls.max_turns", p.MaxTurns, 1, mostTurns)
	c.stronger("calls.escalate.implement", p.Escalate.Implement)
	c.stronger("calls.escalate.review", p.Escalate.Review)
	c.bestOfTwo(&p.BestOfTwo)
	e := &p.Effort
	for _, l := range []struct {
		key   string
		level Level
	}{
		{"analyze", e.Analyze},
		{"implement", e.Implement},
		{"review", e.Review},
		{"reflect", e.Reflect},
		{"complexity.low", e.Complexity.Low},
		{"complexity.med", e.Complexity.Med},
		{"complexity.high", e.Complexity.High},
	} {
		c.level("calls.effort."+l.key, l.level)
	}
}

// bestOfTwo checks of which tasks two changes are made.
func (c *checker) bestOfTwo(b *BestOfTwo) {
	known := []string{"complex", "rejected"}
	for i, when := range b.When {
		at := fmt.Sprintf("calls.best_of_two.when[%d]", i)
		switch {
		case !slices.Contains(known, when):
			c.fail(at, "%q is not one of %s%s", when, strings.Join(known, ", "), suggestion("; ", when, known))
		case slices.Contains(b.When[:i], when):
			c.fail(at, "%q is there twice", when)
		}
	}
	if b.Model != "" {
		c.word("calls.best_of_two.model", b.Model)
	}
	c.level("calls.best_of_two.effort", b.Effort)
	if len(b.When) == 0 && (b.Model != "" || b.Effort != "") {
		c.fail("calls.best_of_two.when", "says of no task that two changes are made; list complex, rejected or both")
	}
}

// stronger checks the steps of an escalation.
func (c *checker) stronger(field string, list []Stronger) {
	if len(list) > mostStronger {
		c.fail(field, "has %d steps; at most %d", len(list), mostStronger)
	}
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if s == (Stronger{}) {
			c.fail(at, "needs a model or an effort")
		}
		if s.Model != "" {
			c.word(at+".model", s.Model)
		}
		c.level(at+".effort", s.Effort)
	}
}

// level refuses a word that is no level.
func (c *checker) level(field string, l Level) {
	if !slices.Contains(levels(), string(l)) {
		c.fail(field, "%q is not one of %s%s", l, strings.Join(levels()[1:], ", "), suggestion("; ", string(l), levels()[1:]))
	}
}

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
	// MaxTurns bounds the requests to the model in one call of an agent, 1 to 10000. The review of a
	// change that is given as files has one more for each of them.
	MaxTurns int `yaml:"max_turns"`
}

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

// EffortByComplexity has a level for each complexity of a task; an empty one leaves it to the role's.
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

// For returns the level of a call of a role. The complexity is that of the task.
func (e *Effort) For(role string, c forge.Complexity) Level {
	if level := e.Complexity.of(c); role == "implement" && level != LevelProgram {
		return level
	}
	return e.role(role)
}

// TakesEffort reports whether a back end can be told how much to think. Gemini CLI and opencode
// cannot, and a recipe has no model. A program of the project's own is told, and does as it likes.
func TakesEffort(agent string) bool {
	return agent != AgentGemini && agent != AgentOpencode && agent != AgentRecipe
}

// EffortIgnored returns the keys of calls.effort, with their values, that have no effect because the
// back end that does that work, or stands in for the one that does, cannot be told.
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
		if p.AgentFor(role) != agent && !slices.Contains(p.Fallback, agent) {
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

// level refuses a word that is no level.
func (c *checker) level(field string, l Level) {
	if !slices.Contains(levels(), string(l)) {
		c.fail(field, "%q is not one of %s%s", l, strings.Join(levels()[1:], ", "), suggestion("; ", string(l), levels()[1:]))
	}
}

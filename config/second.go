package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Second names a second reviewer, whose approval a change needs beside that of the first.
type Second struct {
	// Agent is the back end; empty means that of the first reviewer.
	Agent string `yaml:"agent"`
	// Model is the model as the back end calls it; empty means its default one.
	Model string `yaml:"model"`
	// When lists the risks of the intents whose changes both have to approve.
	When []forge.Risk `yaml:"when"`
}

// risks returns the words for risks.
func risks() []string {
	return []string{string(forge.RiskLow), string(forge.RiskMed), string(forge.RiskHigh)}
}

// FirstReviewer returns who reviews the changes of intents that name no back end.
func (p *Project) FirstReviewer() forge.Reviewer {
	name := p.AgentFor("review")
	return forge.Reviewer{Agent: name, Model: p.ModelsOf(name).Default}
}

// SecondReviewer returns who else reviews; without an agent nobody does.
func (p *Project) SecondReviewer() forge.Reviewer {
	s := p.Review.Second
	if s.Agent == "" && s.Model == "" {
		return forge.Reviewer{}
	}
	name := cmp.Or(s.Agent, p.AgentFor("review"))
	return forge.Reviewer{Agent: name, Model: cmp.Or(s.Model, p.ModelsOf(name).Default)}
}

// second checks the second reviewer. One who is also the first, be it after a setback, would say the
// same twice.
func (c *checker) second(p *Project) {
	const field = "review.second"
	s := p.Review.Second
	for i, risk := range s.When {
		at := fmt.Sprintf("%s.when[%d]", field, i)
		c.oneOf(at, string(risk), risks())
		if slices.Contains(s.When[:i], risk) {
			c.fail(at, "%q is given twice", risk)
		}
	}
	if s.Agent == "" && s.Model == "" {
		if c.pos.Has(field) {
			c.fail(field, "needs an agent or a model; leave it out if one reviewer is enough")
		}
		return
	}
	at := field + ".agent"
	if s.Agent != "" {
		c.oneOf(at, s.Agent, p.AgentNames())
	}
	if s.Model != "" {
		at = field + ".model"
		c.word(at, s.Model)
	}
	second := p.SecondReviewer()
	if second.Agent == AgentRecipe {
		c.fail(field+".agent", "%s reviews nothing but what an intent's recipe made; name an agent that drives a model", AgentRecipe)
		return
	}
	first := p.FirstReviewer()
	if second == first {
		c.fail(at, "is the first reviewer, %s, again; the second must differ from it in agent or model", Named(first))
	}
	for i, up := range p.Calls.Escalate.Review {
		if first.Model = cmp.Or(up.Model, first.Model); up.Model != "" && second == first {
			c.fail(at, "is what calls.escalate.review[%d] makes the first reviewer, %s; the second must differ from it in agent or model",
				i, Named(first))
		}
	}
}

// Named returns a reviewer in words: "codex", or "claude with opus".
func Named(r forge.Reviewer) string {
	if r.Model == "" {
		return r.Agent
	}
	return r.Agent + " with " + r.Model
}

package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Second names a second reviewer, whose approval a change needs beside that of the
// first.
type Second struct {
	// Agent is the back end; empty means that of the first reviewer.
	Agent string `yaml:"agent"`
	// Model is the model as the back end calls it; empty means its default one.
	Model string `yaml:"model"`
	// When lists the risks of the intents whose changes both have to approve.
	When []forge.Risk `yaml:"when"`
}

// riskyEnough returns the risks for which both have to approve where a project
// names a second reviewer and does not say: those for which a person approves the
// plan, too.
func riskyEnough() []forge.Risk { return []forge.Risk{forge.RiskMed, forge.RiskHigh} }

// risks returns the words for risks.
func risks() []string {
	return []string{string(forge.RiskLow), string(forge.RiskMed), string(forge.RiskHigh)}
}

// FirstReviewer returns who reviews the changes of intents that name no back end.
func (p *Project) FirstReviewer() forge.Reviewer {
	name := p.AgentFor("review")
	return forge.Reviewer{Agent: name, Model: p.ModelsOf(name).Default}
}

// SecondReviewer returns who else reviews. Without an agent there is only the
// first.
func (p *Project) SecondReviewer() forge.Reviewer {
	s := p.Review.Second
	if s.Agent == "" && s.Model == "" {
		return forge.Reviewer{}
	}
	name := cmp.Or(s.Agent, p.AgentFor("review"))
	return forge.Reviewer{Agent: name, Model: cmp.Or(s.Model, p.ModelsOf(name).Default)}
}

// SecondPolicy returns the second reviewer and the risks, for the rules. It has no
// risks where there is no second reviewer. Whom a worker calls is up to
// SecondAfter.
func (p *Project) SecondPolicy() forge.SecondReview {
	policy := forge.SecondReview{By: p.SecondReviewer()}
	if policy.By.Agent != "" {
		policy.When = p.Review.Second.When
	}
	return policy
}

// SecondAfter returns who makes a second review: the project's second reviewer, by
// its file as it is now, or by the command where that names none any more. Where
// that one made the first review, because an intent names it or it stood in for
// another, it is the reviewer that the project has for the first. The agent is
// empty if there is no other.
func (p *Project) SecondAfter(in forge.ReviewInput) forge.Reviewer {
	// The file goes before the command: a mistake in it can be mended while an
	// intent waits. That it names none any more does not turn the review off, which
	// the policy of the plan asked for.
	list := []forge.Reviewer{p.SecondReviewer()}
	if list[0].Agent == "" {
		list[0] = *in.Second
	}
	for _, who := range append(list, p.FirstReviewer()) {
		if who != in.First && who.Agent != AgentRecipe {
			return who
		}
	}
	return forge.Reviewer{}
}

// second checks the second reviewer. One who is also the first, be it after a
// setback, would say the same twice.
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
		// Risks without a reviewer would read as if there were a second one.
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
	// A step that names no model keeps the one of the configuration. The steps are
	// models of the first reviewer's back end: the same name at another one is
	// another model.
	for i, up := range p.Calls.Escalate.Review {
		if first.Model = up.Model; up.Model != "" && second == first {
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

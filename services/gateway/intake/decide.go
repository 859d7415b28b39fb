package intake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// Decision says what becomes of a trigger, and why.
type Decision struct {
	// Do is the answer; the other settings are those of the rule.
	Do Do
	// Rule is the rule that matched; empty if none did, and then nothing becomes of it.
	Rule string
	// Asker is whose permission was looked at.
	Asker Account
	// As, Project, Type, Risk, Recipe, Agent, BudgetUSD and Priority are for the intent.
	As        As
	Project   forge.ProjectID
	Type      string
	Risk      forge.Risk
	Recipe    string
	Agent     string
	BudgetUSD float64
	Priority  int
	// Limits are those that the intent counts against.
	Limits []Bound
	// Refused says why nothing becomes of it although a rule let it in, as a sentence for its author; empty if nothing is in the way.
	Refused string
	// Steps has every rule that was looked at, in order, and what was found.
	Steps []Step
}

// Step is one rule that was looked at.
type Step struct {
	// Rule is its name.
	Rule string
	// Repository says that it is one of the repository's own.
	Repository bool
	// Matched says whether it is the one that decided.
	Matched bool
	// Why is the first condition that did not hold, or what the rule says.
	Why string
}

// Bound is a limit with the key under which it is counted.
type Bound struct {
	Limit

	// Key names all that is counted together, with the day.
	Key string
}

// Used says how much was let in under a key: how many intents, with which budgets together.
type Used func(key string) (count int, usd float64)

// Decide looks for the first of the operator's rules that matches. The rules of the repository, if there are some, make the
// decision stricter or leave it as it is. used counts what was let in before; now is the time of the trigger.
func (rs *Rules) Decide(t *Trigger, narrowing *Rules, used Used, now time.Time) Decision {
	d := Decision{Do: Ignore}
	var by *Rule
	by, d.Asker, d.Steps = rs.first(t, false)
	if by == nil {
		return d
	}
	d.Do, d.Rule, d.As, d.Project = by.Do, by.Name, by.As, forge.ProjectID(by.Project)
	d.Type, d.Risk, d.Recipe, d.Agent, d.BudgetUSD, d.Priority = by.Type, by.Risk, by.Recipe, by.Agent, by.BudgetUSD, by.Priority
	d.bound(by, t, now)
	if narrowing != nil {
		own, _, steps := narrowing.first(t, true)
		d.Steps = append(d.Steps, steps...)
		if own != nil {
			d.narrow(own)
			d.bound(own, t, now)
		}
	}
	if d.Do == Ask {
		d.Risk = forge.RiskHigh // no project lets that run unapproved
	}
	if d.Do != Ignore {
		d.Refused = d.exceeded(used)
	}
	return d
}

// first returns the first rule that matches, with who asked in its eyes, and all that were looked at.
func (rs *Rules) first(t *Trigger, repository bool) (*Rule, Account, []Step) {
	var steps []Step
	for i := range rs.list {
		r := &rs.list[i]
		asker, why := r.match(t)
		step := Step{Rule: r.Name, Repository: repository, Matched: why == "", Why: why}
		if step.Matched {
			step.Why = "matches: " + string(r.Do)
		}
		steps = append(steps, step)
		if step.Matched {
			return r, asker, steps
		}
	}
	return nil, t.Author, steps
}

// match returns who asked, and the first condition that does not hold; empty if all do.
func (r *Rule) match(t *Trigger) (asker Account, why string) {
	w := &r.When
	asker = t.Author
	if t.Command != "" {
		asker = t.Commander
	}
	if w.Label != "" {
		i := slices.IndexFunc(t.Labels, func(l Label) bool { return strings.EqualFold(l.Name, w.Label) })
		if i < 0 {
			return asker, "the issue has no label " + w.Label
		}
		if t.Command == "" {
			asker = t.Labels[i].By
		}
	}
	switch {
	case w.Forge != "" && w.Forge != t.Forge:
		return asker, "it is for the forge " + w.Forge
	case !w.isRepository(t.Repository):
		return asker, "it is for the repository " + w.Repository
	case w.Event != "" && w.Event != t.Event:
		return asker, "it is for the event " + string(w.Event)
	case w.Command != "" && w.Command != t.Command:
		return asker, "it is for the command " + string(w.Command)
	case w.Command == "" && t.Command != "" && r.Do != Ignore:
		return asker, "it lets no commands in"
	case w.Author != "" && !strings.EqualFold(w.Author, t.Author.Login):
		return asker, "it is for the author " + w.Author
	}
	if why := r.matchAsker(&t.Author, &asker); why != "" {
		return asker, why
	}
	return asker, w.matchText(t)
}

// matchText returns the first pattern that does not match; empty if all do.
func (w *When) matchText(t *Trigger) string {
	switch {
	case w.title != nil && !w.title.MatchString(bounded(t.Title)):
		return "the title does not match"
	case w.body != nil && !w.body.MatchString(bounded(t.Body)):
		return "the body does not match"
	}
	return ""
}

// matchAsker returns the first condition on who asked that does not hold. A program is let in only by a rule that names it; to
// ignore it no rule has to.
func (r *Rule) matchAsker(author, asker *Account) string {
	w := &r.When
	switch {
	case w.Asker != "" && !strings.EqualFold(w.Asker, asker.Login):
		return "it is for " + w.Asker
	case w.Is != "" && w.Is != asker.Kind:
		return fmt.Sprintf("it is for a %s; %s is %q", w.Is, asker.Login, asker.Kind)
	case r.Do != Ignore && w.Is != Bot && asker.Kind == Bot:
		return "a bot asks, and the rule does not say is: bot"
	case r.Do != Ignore && author.Kind == Bot && author.ID != asker.ID && w.Author == "":
		return "a bot wrote the text, and the rule does not name it as author"
	case w.Permission != "" && !asker.Permission.Includes(w.Permission):
		return fmt.Sprintf("it asks for the permission %s; %s has %q", w.Permission, asker.Login, asker.Permission)
	case w.Team != "" && !slices.ContainsFunc(asker.Teams, func(team string) bool { return strings.EqualFold(team, w.Team) }):
		return fmt.Sprintf("%s is not in the team %s", asker.Login, w.Team)
	}
	return ""
}

// isRepository reports whether the pattern of the rule is about a repository.
func (w *When) isRepository(name string) bool {
	if owner, all := cutAll(w.Repository); all {
		return strings.EqualFold(owner, name[:max(strings.IndexByte(name, '/'), 0)])
	}
	return w.Repository == "" || strings.EqualFold(w.Repository, name)
}

// cutAll returns the owner in owner/*.
func cutAll(pattern string) (owner string, ok bool) { return strings.CutSuffix(pattern, "/*") }

// bounded is the part of a text that patterns see.
func bounded(s string) string { return s[:min(len(s), maxMatched)] }

// narrow makes the decision as strict as a rule of the repository, if that is stricter.
func (d *Decision) narrow(own *Rule) {
	if slices.Index(dos, own.Do) < slices.Index(dos, d.Do) {
		d.Do = own.Do
	}
	d.Risk = forge.MaxRisk(d.Risk, own.Risk)
	if own.BudgetUSD > 0 && (d.BudgetUSD == 0 || own.BudgetUSD < d.BudgetUSD) {
		d.BudgetUSD = own.BudgetUSD
	}
}

// bound adds the limit of a rule.
func (d *Decision) bound(r *Rule, t *Trigger, now time.Time) {
	if r.Limit == nil {
		return
	}
	key := now.UTC().Format(time.DateOnly) + " " + string(r.Limit.Per)
	switch r.Limit.Per {
	case PerAuthor:
		key += fmt.Sprintf(" %s/%d", t.Forge, d.Asker.ID)
	case PerRepository:
		key += fmt.Sprintf(" %s/%d", t.Forge, t.RepositoryID)
	case PerDay:
	}
	d.Limits = append(d.Limits, Bound{Limit: *r.Limit, Key: key})
}

// exceeded returns why one of the limits does not let another intent in; empty if all do.
func (d *Decision) exceeded(used Used) string {
	for _, b := range d.Limits {
		count, usd := used(b.Key)
		switch {
		case b.Count > 0 && count >= b.Count:
			return fmt.Sprintf("the limit of %d a day for each %s is reached", b.Count, b.Per)
		case b.USD > 0 && usd+d.BudgetUSD > b.USD:
			return fmt.Sprintf("the limit of $%.2f a day for each %s would be exceeded", b.USD, b.Per)
		}
	}
	return ""
}

// Explain returns the decision as lines for a person: each rule that was looked at, and what it said.
func (d *Decision) Explain() string {
	var b strings.Builder
	for _, s := range d.Steps {
		mark, of := "no ", ""
		if s.Matched {
			mark = "yes"
		}
		if s.Repository {
			of = " (of the repository)"
		}
		fmt.Fprintf(&b, "%s %s%s: %s\n", mark, s.Rule, of, s.Why)
	}
	if d.Rule == "" {
		b.WriteString("no rule matches: ignore\n")
	}
	fmt.Fprintf(&b, "do: %s\n", d.Do)
	if d.Refused != "" {
		fmt.Fprintf(&b, "refused: %s\n", d.Refused)
	}
	return b.String()
}

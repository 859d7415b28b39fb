package intake

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Decision says what becomes of a trigger, and why.
type Decision struct {
	// Do is the answer; the other settings are those of the rule.
	Do Do
	// Rule is the rule that matched; empty if none did, and then nothing becomes of it.
	Rule string
	// Asker is the account whose permission was checked.
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
	// Counts are all those that the intent counts under if it is submitted,
	// whether a limit asks for them or not.
	Counts []Count
	// Limited says that a limit counts the intent: that of a rule which decided, or one for
	// each day in the file of such a rule. It is submitted only after it was counted ([Tally]).
	Limited bool
	// Edited says, as a sentence for people, that the text is not the one that
	// its asker saw, so that a person has to be asked; empty otherwise.
	Edited string
	// Uncounted says that it was refused since it is not known what was let in
	// before. The same trigger is decided on again later.
	Uncounted bool
	// Limits are those that it was held against, each with one of the keys.
	Limits []Bound
	// Refused says why nothing becomes of it although a rule let it in, as a
	// sentence for its author; empty if nothing is in the way.
	Refused string
	// Steps has every rule that was looked at, in order, and what was found.
	Steps []Step
}

// Step is one rule that was looked at.
type Step struct {
	// File is the name of the file that it stands in, and Rule its own.
	File, Rule string
	// Repository says that it is one of the repository's own.
	Repository bool
	// Matched says whether it is the one that decided.
	Matched bool
	// Why is the first condition that did not hold, or what the rule says.
	Why string
}

// Count is one key that an intent counts under, with the dollars that it counts for there.
// Under the operator's keys that is the operator's budget, whatever smaller one a repository
// gives: many cheap intents would be let in otherwise where the operator lets few in.
type Count struct {
	Key string
	USD float64
}

// Bound is a limit with the key under which it is counted.
type Bound struct {
	Limit

	// Key names all that is counted together, with the day.
	Key string

	// budget counts against the limit: that of the operator's rule for the
	// operator's limit, whatever a repository makes of it.
	budget float64
}

// Used says how much was let in under a key: how many intents, with which budgets
// together. Nil says that it is not known; nothing is let in then that a limit counts.
type Used func(key string) (count int, usd float64)

// uncounted is why nothing becomes of a trigger while nothing is known of those before it.
const uncounted = "a limit counts this, and what was let in today cannot be read now; it is tried again"

// Decide looks for the first of the operator's rules that matches. The rules of
// the repository, if there are some, make the decision stricter or leave it as
// it is. used counts what was let in before; now is the time of the trigger.
func (rs *Rules) Decide(t *Trigger, narrowing *Rules, used Used, now time.Time) Decision {
	d := Decision{Do: Ignore}
	first := rs.first(t, false)
	d.Asker, d.Steps = first.asker, first.steps
	by := first.rule
	if by == nil {
		return d
	}
	d.Do, d.Rule, d.As, d.Project = by.Do, by.Name, by.As, forge.ProjectID(by.Project)
	d.Type, d.Risk, d.Recipe, d.Agent, d.BudgetUSD, d.Priority = by.Type, by.Risk, by.Recipe, by.Agent, by.BudgetUSD, by.Priority
	d.Limited = rs.limits(by)
	d.count(by, "", t, now)
	d.doubt(first)
	d.compare(t, first)
	if narrowing != nil {
		own := narrowing.first(t, true)
		d.Steps = append(d.Steps, own.steps...)
		d.doubt(own)
		d.compare(t, own)
		if own.rule != nil {
			d.narrow(own.rule)
			d.Limited = d.Limited || narrowing.limits(own.rule)
			d.count(own.rule, "own ", t, now)
		}
	}
	if d.Do == Ask {
		d.Risk = forge.RiskHigh // no project lets that run unapproved
	}
	switch {
	case d.Do == Ignore:
	case used != nil:
		d.Refused = d.exceeded(used)
	case d.Limited:
		d.Refused, d.Uncounted = uncounted, true
	}
	return d
}

// limits reports whether a limit counts what one of the rules lets in: its own,
// or one for each day of any of them.
func (rs *Rules) limits(r *Rule) bool { return r.Limit != nil || rs.daily }

// found holds the outcome of a search through rules.
type found struct {
	// rule is the first that matches; nil if none does.
	rule *Rule
	// asker is the account that asked, by that rule.
	asker Account
	// steps are all that were looked at.
	steps []Step
	// unread says that a stricter rule before it might have matched: its pattern was
	// not held against a text that is too long, or who is in its team is not known.
	unread bool
}

// Why a rule does not match although it might: its pattern does not see all of
// the text, or its team, which follows, cannot be read.
const (
	tooLong    = "the text is longer than patterns see"
	unreadTeam = "the forge does not show our account the members of team "
)

// first looks for the first rule that matches.
func (rs *Rules) first(t *Trigger, repository bool) found {
	f := found{asker: t.Author}
	for i := range rs.list {
		r := &rs.list[i]
		asker, why := r.match(t, rs.text)
		step := Step{File: rs.file, Rule: r.Name, Repository: repository, Matched: why == "", Why: why}
		if step.Matched {
			step.Why = "matches: " + string(r.Do)
		}
		f.steps = append(f.steps, step)
		f.unread = f.unread || why == tooLong || r.Do != Go && strings.HasPrefix(why, unreadTeam)
		if step.Matched {
			f.rule, f.asker = r, asker
			return f
		}
	}
	return f
}

// doubt has a person asked if a rule was passed over that might have matched,
// and be a stricter one.
func (d *Decision) doubt(f found) {
	if f.unread && d.Do == Go {
		d.Do = Ask
	}
}

// match returns who asked, and the first condition that does not hold; empty if all do.
func (r *Rule) match(t *Trigger, most int) (asker Account, why string) {
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
	case w.Command == "" && t.Command != "" && !r.keeps:
		return asker, "it lets no commands in"
	case w.Author != "" && !strings.EqualFold(w.Author, t.Author.Login):
		return asker, "it is for the author " + w.Author
	case w.AuthorID != 0 && w.AuthorID != t.Author.ID:
		return asker, fmt.Sprintf("it is for the author number %d", w.AuthorID)
	}
	if why := r.matchAsker(&t.Author, &asker); why != "" {
		return asker, why
	}
	return asker, r.matchText(t, most)
}

// matchText returns the first pattern that does not match; empty if all do. A text of
// more than so many bytes is not looked into: to keep it out that is enough, and to
// let it in it never is, since whatever a pattern looks for could stand at the end.
func (r *Rule) matchText(t *Trigger, most int) string {
	for _, of := range []struct {
		name, text string
		pattern    *regexp.Regexp
	}{{"title", t.Title, r.When.title}, {"body", t.Body, r.When.body}} {
		switch {
		case of.pattern == nil, len(of.text) > most && r.keeps:
		case len(of.text) > most:
			return tooLong
		case !of.pattern.MatchString(of.text):
			return "the " + of.name + " does not match"
		}
	}
	return ""
}

// matchAsker returns the first condition on who asked that does not hold; empty if all do.
func (r *Rule) matchAsker(author, asker *Account) string {
	w := &r.When
	if why := r.matchPerson(author, asker); why != "" {
		return why
	}
	switch {
	case w.Asker != "" && !strings.EqualFold(w.Asker, asker.Login):
		return "it is for " + w.Asker
	case w.AskerID != 0 && w.AskerID != asker.ID:
		return fmt.Sprintf("it is for the account number %d", w.AskerID)
	case w.Is != "" && w.Is != asker.Kind:
		return fmt.Sprintf("it is for a %s; %s is %q", w.Is, asker.Login, asker.Kind)
	case w.Permission != "" && !asker.Permission.Includes(w.Permission):
		return fmt.Sprintf("it asks for the permission %s; %s has %q", w.Permission, asker.Login, asker.Permission)
	case w.Team != "" && holds(asker.Unread, w.Team):
		return unreadTeam + w.Team
	case w.Team != "" && !holds(asker.Teams, w.Team):
		return fmt.Sprintf("%s is not in the team %s", asker.Login, w.Team)
	}
	return ""
}

// holds reports whether a team is in a list. Letter case is ignored, as forges do.
func holds(teams []string, team string) bool {
	return slices.ContainsFunc(teams, func(t string) bool { return strings.EqualFold(t, team) })
}

// matchPerson returns why a rule lets nothing of these accounts in. A program
// is let in only by a rule that names it; to ignore it no rule has to.
func (r *Rule) matchPerson(author, asker *Account) string {
	w := &r.When
	switch {
	case r.keeps:
		return ""
	case asker.ID <= 0 || author.ID <= 0:
		return "the forge did not say who asks, or who wrote the text"
	case w.Is != Bot && asker.Kind == Bot:
		return "a bot asks, and the rule does not say is: bot"
	case asker.Kind != Bot && !asker.isPerson():
		return "the forge did not say whether a person asks"
	case !author.isPerson() && author.ID != asker.ID && w.Author == "" && w.AuthorID == 0:
		return "no person wrote the text, and the rule does not name the author"
	}
	return ""
}

// isRepository reports whether the pattern of the rule is about a repository.
func (w *When) isRepository(name string) bool {
	if owner, all := cutAll(w.Repository); all {
		return len(name) > len(owner) && name[len(owner)] == '/' && strings.EqualFold(owner, name[:len(owner)])
	}
	return w.Repository == "" || strings.EqualFold(w.Repository, name)
}

// cutAll returns the owner in owner/*, which stands for all that is in its groups as well.
func cutAll(pattern string) (owner string, ok bool) { return strings.CutSuffix(pattern, "/*") }

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

// count adds the keys of a rule, and its limit. The rules of a repository, of,
// count apart from the operator's and from those of other repositories.
func (d *Decision) count(r *Rule, of string, t *Trigger, now time.Time) {
	begin := dayOf(now) + of
	repository := fmt.Sprintf("%s/%d", t.Forge, t.RepositoryID)
	keys := map[Per]string{
		PerAuthor:     fmt.Sprintf("%s%s %s/%d %q", begin, PerAuthor, t.Forge, d.Asker.ID, r.Name),
		PerRepository: fmt.Sprintf("%s%s %s %q", begin, PerRepository, repository, r.Name),
		PerDay:        begin + string(PerDay),
	}
	if of != "" {
		keys[PerAuthor] += " " + repository
		keys[PerDay] += " " + repository
	}
	for _, per := range []Per{PerAuthor, PerRepository, PerDay} {
		d.Counts = append(d.Counts, Count{keys[per], d.BudgetUSD})
	}
	if r.Limit != nil {
		d.Limits = append(d.Limits, Bound{Limit: *r.Limit, Key: keys[r.Limit.Per], budget: d.BudgetUSD})
	}
}

// exceeded returns why one of the limits does not let another intent in; empty if all do.
func (d *Decision) exceeded(used Used) string {
	for _, b := range d.Limits {
		count, usd := used(b.Key)
		switch {
		case b.Count > 0 && count >= b.Count:
			return fmt.Sprintf("the limit of %d a day for each %s is reached", b.Count, b.Per)
		case b.USD > 0 && usd+b.budget > b.USD:
			return fmt.Sprintf("the limit of $%.2f a day for each %s would be exceeded", b.USD, b.Per)
		}
	}
	return ""
}

// maxWhy bounds the reason for one rule in an explanation, in characters: it
// repeats names of the forge.
const maxWhy = 200

// Explain returns the decision as lines for a person: each rule that was looked
// at, with its file, and what it said.
func (d *Decision) Explain() string {
	var b strings.Builder
	for _, s := range d.Steps {
		mark, of := "no ", ""
		if s.Matched {
			mark = "yes"
		}
		if s.Repository {
			of = ", of the repository"
		}
		fmt.Fprintf(&b, "%s %s (%s%s): %s\n", mark, term.Short(s.Rule, maxName), term.Short(s.File, maxName), of, term.Short(s.Why, maxWhy))
	}
	if d.Rule == "" {
		b.WriteString("no rule matches: ignore\n")
	}
	if d.Edited != "" {
		fmt.Fprintf(&b, "asked: %s\n", term.Short(d.Edited, maxWhy))
	}
	fmt.Fprintf(&b, "do: %s\n", d.Do)
	if d.Refused != "" {
		fmt.Fprintf(&b, "refused: %s\n", d.Refused)
	}
	return b.String()
}

package intake

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Do names the consequence of a trigger.
type Do string

// What can become of a trigger, from the strictest on.
const (
	// Ignore drops it.
	Ignore Do = "ignore"
	// Ask submits an intent that waits for a person, whatever the project trusts.
	Ask Do = "ask"
	// Go submits an intent that waits only for what the project's own policy asks for.
	Go Do = "go"
)

var dos = []Do{Ignore, Ask, Go}

// As says in whose name an intent is submitted.
type As string

// The names in which an intent can be submitted.
const (
	// AsSystem is the name of the forge, which the project may trust by policy.trusted_origins.
	AsSystem As = "system"
	// AsPerson is that of the person who triggered it. An account that no
	// person is known for has nothing submitted.
	AsPerson As = "person"
)

// Per names the things that a limit counts together.
type Per string

// The things that a limit counts together. All of them count a day in UTC.
const (
	PerAuthor     Per = "author"
	PerRepository Per = "repository"
	// PerDay counts everything that all the rules of the file let in.
	PerDay Per = "day"
)

// When has the conditions of a rule. All that are given have to hold.
type When struct {
	// Forge is the name of a forge.
	Forge string `yaml:"forge"`
	// Repository is owner/name, or owner/* for all of an owner, with those in
	// its groups. Letter case is ignored, as forges do.
	Repository string `yaml:"repository"`
	// Event is issue or comment.
	Event Event `yaml:"event"`
	// Label is on the issue.
	Label string `yaml:"label"`
	// Author is the login of who wrote the text, and AuthorID the forge's
	// number for them: logins are given to others.
	Author   string `yaml:"author"`
	AuthorID int64  `yaml:"author_id"`
	// Asker is the login of who asked: who put the label on, if the rule names
	// one; who wrote the command, if there is one; otherwise who wrote the
	// text. AskerID is the forge's number for them.
	Asker   string `yaml:"asker"`
	AskerID int64  `yaml:"asker_id"`
	// Permission is the least that the asker may do in the repository.
	Permission Permission `yaml:"permission"`
	// Team is one that the asker belongs to: of the organisation that owns the repository,
	// as it stands in the team's address. On GitLab it is a group with all that is before
	// it, as group/subgroup, and in the group that the repository is in at the top.
	Team string `yaml:"team"`
	// Is says what the asker is. No rule without it matches a bot.
	Is Kind `yaml:"is"`
	// Command is the verb of a command in a comment. A rule without it lets no
	// command in, but may ignore them.
	Command Verb `yaml:"command"`
	// Title and Body are regular expressions (RE2) that match in the text.
	Title string `yaml:"title"`
	Body  string `yaml:"body"`

	title, body *regexp.Regexp
}

// Limit bounds the intents that one rule lets in on a day in UTC, or, if it is
// PerDay, all the rules of its file.
type Limit struct {
	// Per says what is counted together.
	Per Per `yaml:"per"`
	// Count is how many intents; 0 for no bound.
	Count int `yaml:"count"`
	// USD bounds the sum of their budgets; 0 for no bound.
	USD float64 `yaml:"usd"`
}

// Rule says what becomes of the triggers that it matches.
type Rule struct {
	// Name is for explanations, and for what counts against its limit; a rule
	// without one is called by its number.
	Name string `yaml:"name"`
	// When has the conditions. A rule without any matches every issue that a
	// person wrote, and ignores everything if it ignores.
	When When `yaml:"when"`
	// Do says what becomes of them.
	Do Do `yaml:"do"`
	// As is in whose name; AsSystem unless given.
	As As `yaml:"as"`
	// Project is the id of the project that the intent is for.
	Project string `yaml:"project"`
	// Type, Risk, Recipe, Agent, BudgetUSD and Priority are those of the intent.
	Type      string     `yaml:"type"`
	Risk      forge.Risk `yaml:"risk"`
	Recipe    string     `yaml:"recipe"`
	Agent     string     `yaml:"agent"`
	BudgetUSD float64    `yaml:"budget_usd"`
	Priority  int        `yaml:"priority"`
	// Limit bounds how much this rule lets in; nil for no bound.
	Limit *Limit `yaml:"limit"`

	// keeps says that the rule lets nothing in, so that it matches commands,
	// programs and texts that it does not see the end of as well: it ignores,
	// or asks in a file that only makes others stricter.
	keeps bool
}

// Rules are those of an operator, or of a repository.
type Rules struct {
	// file is the name of the file, for explanations.
	file string
	list []Rule
	// daily says that one of them has a limit for each day, which counts what all of them let in.
	daily bool
	// text bounds the text that their patterns see, in bytes.
	text int
}

const (
	// maxRules bounds the rules of a file, and maxName the name of one, in characters.
	maxRules = 200
	maxName  = 100
	// maxTeams bounds the teams that a file names: the forge is asked about
	// each of them for everyone who asks.
	maxTeams = 20
	// maxNumber bounds counts and dollars, so that sums of them stay exact.
	maxNumber = 1_000_000
)

// file is the form of both kinds of files.
type file struct {
	Rules []Rule `yaml:"rules"`
}

// Projects returns the projects that intents can be submitted for, in order.
func (rs *Rules) Projects() []forge.ProjectID {
	var list []forge.ProjectID
	for i := range rs.list {
		if r := &rs.list[i]; r.Do != Ignore && !slices.Contains(list, forge.ProjectID(r.Project)) {
			list = append(list, forge.ProjectID(r.Project))
		}
	}
	slices.Sort(list)
	return list
}

// Teams returns the teams that rules about a repository name, in order, each
// once; none if there are no rules.
func (rs *Rules) Teams(repository string) []string {
	return rs.teams(func(w *When) bool { return w.isRepository(repository) })
}

// teams returns the teams of those rules that are meant.
func (rs *Rules) teams(meant func(*When) bool) []string {
	if rs == nil {
		return nil
	}
	var list []string
	for i := range rs.list {
		if w := &rs.list[i].When; w.Team != "" && !holds(list, w.Team) && meant(w) {
			list = append(list, w.Team)
		}
	}
	slices.Sort(list)
	return list
}

// Parse reads the operator's rules. Every error is a strictyaml.Errors with file, line and field.
func Parse(name string, data []byte) (*Rules, error) {
	return read(name, data, operatorsPatterns, func(r *Rule, wrong func(field, format string, args ...any)) {
		r.keeps = r.Do == Ignore
		if r.Do != Ignore && r.Project == "" {
			wrong("project", "is missing; it is the project that the intent is for")
		}
		if r.Do == Go && r.When.AskerID == 0 && r.When.Permission == "" {
			wrong("when", "needs asker_id or permission to go; everybody can have a login, once who had it is renamed")
		}
	})
}

// ParseNarrowing reads the rules of a repository. They may ignore or ask, and
// bound risk and money; everything else is the operator's.
func ParseNarrowing(name string, data []byte) (*Rules, error) {
	return read(name, data, repositorysPatterns, func(r *Rule, wrong func(field, format string, args ...any)) {
		r.keeps = r.Do != Go
		given := map[string]bool{
			"as": r.As != AsSystem, "project": r.Project != "", "type": r.Type != "", "recipe": r.Recipe != "", "agent": r.Agent != "",
			"priority": r.Priority != 0, "when.forge": r.When.Forge != "", "when.repository": r.When.Repository != "",
		}
		for _, field := range []string{"as", "project", "type", "recipe", "agent", "priority", "when.forge", "when.repository"} {
			if given[field] {
				wrong(field, "is the operator's to say; a repository can only make the operator's rules stricter")
			}
		}
	})
}

// read decodes and checks rules; more has the checks that differ between their owners.
func read(name string, data []byte, bounds patternBounds, more func(*Rule, func(field, format string, args ...any))) (*Rules, error) {
	var f file
	places, err := strictyaml.Decode(data, &f, strictyaml.Options{File: name})
	if err != nil {
		return nil, err
	}
	var errs strictyaml.Errors
	if len(f.Rules) > maxRules {
		errs = append(errs, places.Errorf("rules", "has %d rules; at most %d are allowed", len(f.Rules), maxRules))
		return nil, errs
	}
	patterns, names := &compile{patternBounds: bounds}, map[string]bool{}
	for i := range f.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		wrong := func(field, format string, args ...any) {
			errs = append(errs, places.Errorf(path+"."+field, format, args...))
		}
		r := &f.Rules[i]
		r.Name = cmp.Or(r.Name, fmt.Sprintf("rule %d", i+1))
		r.As = cmp.Or(r.As, AsSystem)
		r.check(wrong)
		if names[r.Name] {
			wrong("name", "is that of another rule; both would count against the limit of either")
		}
		names[r.Name] = true
		r.When.check(patterns, func(field, format string, args ...any) { wrong("when."+field, format, args...) })
		more(r, wrong)
	}
	rules := &Rules{file: name, list: f.Rules, text: bounds.text}
	rules.daily = slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.Limit != nil && r.Limit.Per == PerDay })
	if n := len(rules.teams(func(*When) bool { return true })); n > maxTeams {
		errs = append(errs, places.Errorf("rules", "name %d teams; at most %d are allowed", n, maxTeams))
	}
	if len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}
	return rules, nil
}

// check reports what is wrong with everything but the conditions.
func (r *Rule) check(wrong func(field, format string, args ...any)) {
	if r.Name != term.Short(term.Visible(r.Name), maxName) {
		wrong("name", "has to be one line of at most %d characters that can be seen", maxName)
	}
	oneOf(wrong, "do", r.Do, dos, false)
	oneOf(wrong, "as", r.As, []As{AsSystem, AsPerson}, false)
	oneOf(wrong, "risk", r.Risk, []forge.Risk{forge.RiskLow, forge.RiskMed, forge.RiskHigh}, true)
	if _, err := forge.ParseProjectID(r.Project); r.Project != "" && err != nil {
		wrong("project", "%v", err)
	}
	if r.Recipe != "" && !recipe.MatchString(r.Recipe) {
		wrong("recipe", "is not the name of a recipe")
	}
	if !(r.BudgetUSD >= 0 && r.BudgetUSD <= maxNumber) {
		wrong("budget_usd", "has to be between 0 and %d", maxNumber)
	}
	if r.Priority < -maxNumber || r.Priority > maxNumber {
		wrong("priority", "has to be between -%d and %d", maxNumber, maxNumber)
	}
	if r.When.Is == Bot && r.Do != Ignore && r.When.Asker == "" && r.When.AskerID == 0 {
		wrong("when.asker", "is missing, or asker_id; a bot is let in by its name only, since everybody can have one")
	}
	if r.Limit != nil {
		r.Limit.check(r, wrong)
	}
}

// check reports what is wrong with the limit of a rule.
func (l *Limit) check(r *Rule, wrong func(field, format string, args ...any)) {
	oneOf(wrong, "limit.per", l.Per, []Per{PerAuthor, PerRepository, PerDay}, false)
	if l.Count < 0 || l.Count > maxNumber || !(l.USD >= 0 && l.USD <= maxNumber) || l.Count == 0 && l.USD == 0 {
		wrong("limit", "needs a count or usd between 1 and %d", maxNumber)
	}
	if l.USD > 0 && r.BudgetUSD == 0 {
		wrong("limit.usd", "counts the budgets of intents, so that the rule needs budget_usd")
	}
}

// check reports what is wrong with the conditions, and compiles the patterns.
func (w *When) check(patterns *compile, wrong func(field, format string, args ...any)) {
	oneOf(wrong, "event", w.Event, []Event{Issue, Comment}, true)
	oneOf(wrong, "permission", w.Permission, permissions[1:], true)
	oneOf(wrong, "is", w.Is, []Kind{Member, Outsider, Bot}, true)
	if _, ok := verbs[w.Command]; w.Command != "" && !ok {
		wrong("command", "is no command")
	}
	if w.Command != "" && w.Event == Issue {
		wrong("command", "is in comments only; an issue has none")
	}
	if w.Forge != "" && CheckForge(w.Forge) != nil {
		wrong("forge", "is not the name of a forge")
	}
	if owner, all := cutAll(w.Repository); w.Repository != "" {
		// Rules are for all forges, and a name is only compared here. That of a
		// group has the form of a name in it.
		name := w.Repository
		if all {
			name = owner + "/any"
		}
		if CheckNested(name) != nil {
			wrong("repository", "has to be owner/name, owner/*, or group/subgroup/name of GitLab")
		}
	}
	if w.Team != "" {
		if err := CheckTeam(w.Team); err != nil {
			wrong("team", "%v", err)
		}
	}
	for field, id := range map[string]int64{"author_id": w.AuthorID, "asker_id": w.AskerID} {
		if id < 0 {
			wrong(field, "has to be positive, as the forge's numbers are")
		}
	}
	w.title = patterns.pattern(wrong, "title", w.Title)
	w.body = patterns.pattern(wrong, "body", w.Body)
}

// oneOf reports a word that is not among those allowed.
func oneOf[T ~string](wrong func(field, format string, args ...any), field string, word T, allowed []T, empty bool) {
	switch {
	case slices.Contains(allowed, word), empty && word == "":
	case word == "":
		wrong(field, "is missing; it can be one of %v", allowed)
	default:
		wrong(field, "is %q; it can be one of %v", word, allowed)
	}
}

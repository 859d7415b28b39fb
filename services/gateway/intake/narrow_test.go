package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// drawRule draws a rule of the operator, or of a repository where of is empty.
func drawRule(of string) *rapid.Generator[string] {
	words := func(t *rapid.T, field string, values ...string) string {
		if v := rapid.SampledFrom(append([]string{"", ""}, values...)).Draw(t, field); v != "" {
			return ", " + field + ": " + v
		}
		return ""
	}
	return rapid.Custom(func(t *rapid.T) string {
		do := rapid.SampledFrom([]string{"go", "ask", "ignore"}).Draw(t, "do")
		when := "permission: " + rapid.SampledFrom([]string{"read", "write", "read"}).Draw(t, "permission")
		when += words(t, "label", "forge", "eves") + words(t, "team", "core", "ops", "hidden") + words(t, "is", "member", "outsider") +
			words(t, "author", "eve") + words(t, "title", "crash", "none") + words(t, "event", "issue", "comment")
		if !strings.Contains(when, "event: issue") {
			when += words(t, "command", "run")
		}
		usd := rapid.SampledFrom([]int{5, 1, 3, 9, 0}).Draw(t, "usd")
		s := fmt.Sprintf("{when: {%s}, do: %s%s, budget_usd: %d", when, do, of, usd) + words(t, "risk", "low", "med", "high")
		per := rapid.SampledFrom([]string{"day", "author", "repository"}).Draw(t, "per")
		switch limit := rapid.SampledFrom([]string{"usd", "count", ""}).Draw(t, "limit"); {
		case limit == "count":
			s += fmt.Sprintf(", limit: {per: %s, count: %d}", per, rapid.IntRange(1, 3).Draw(t, "most"))
		case limit == "usd" && usd > 0:
			s += fmt.Sprintf(", limit: {per: %s, usd: %d}", per, rapid.IntRange(5, 12).Draw(t, "most"))
		}
		return s + "}"
	})
}

// drawTrigger draws an issue or a command of one of three accounts, whose teams
// are known, unknown or none.
func drawTrigger(t *rapid.T) intake.Trigger {
	account := func(name string) intake.Account {
		mia := intake.Account{ID: 9, Login: "mia", Kind: intake.Member, Permission: intake.Admin}
		a := rapid.SampledFrom([]intake.Account{issue().Author, issue().Labels[0].By, mia}).Draw(t, name)
		a.Teams = rapid.SampledFrom([][]string{nil, {"core"}, {"ops", "core"}}).Draw(t, "teams")
		a.Unread = rapid.SampledFrom([][]string{nil, {"hidden"}}).Draw(t, "unread")
		return a
	}
	t1 := issue()
	if rapid.Bool().Draw(t, "comment") {
		t1 = comment(account("commander"), intake.Run)
	}
	t1.Author = account("author")
	for i := range t1.Labels {
		t1.Labels[i].By = account("labeller")
	}
	t1.RepositoryID = rapid.Int64Range(3, 4).Draw(t, "repository")
	if rapid.Bool().Draw(t, "long") { // longer than a repository's patterns see, and maybe than the operator's
		t1.Body = strings.Repeat("x ", rapid.SampledFrom([]int{10 << 10, 40 << 10}).Draw(t, "length"))
	}
	return t1
}

// usage is how much was let in under a key.
type usage struct {
	count int
	usd   float64
}

// counters holds what was let in on a day, by the key.
type counters map[string]usage

func (c counters) used(key string) (int, float64) { return c[key].count, c[key].usd }

// add counts an intent.
func (c counters) add(d *intake.Decision) {
	for _, k := range d.Counts {
		c[k.Key] = usage{c[k.Key].count + 1, c[k.Key].usd + k.USD}
	}
}

// letsIn reports whether an intent is submitted.
func letsIn(d *intake.Decision) bool { return d.Do != intake.Ignore && d.Refused == "" }

// wider returns in which way a decision is wider than another one; empty if it is in none.
func wider(narrow, wide *intake.Decision) string {
	order := []intake.Do{intake.Ignore, intake.Ask, intake.Go}
	switch {
	case slices.Index(order, narrow.Do) > slices.Index(order, wide.Do):
		return "it does more"
	case letsIn(narrow) && !letsIn(wide):
		return "it lets in"
	case narrow.Do != intake.Ignore && narrow.Risk.Rank() < wide.Risk.Rank():
		return "it has less risk"
	case wide.BudgetUSD > 0 && (narrow.BudgetUSD == 0 || narrow.BudgetUSD > wide.BudgetUSD):
		return "it has more money"
	case narrow.Project != wide.Project, narrow.As != wide.As, narrow.Rule != wide.Rule, narrow.Asker.ID != wide.Asker.ID:
		return "it is another one"
	case len(narrow.Counts) < len(wide.Counts) || !slices.Equal(narrow.Counts[:len(wide.Counts)], wide.Counts):
		return "it counts less"
	}
	return ""
}

// TestARepositoryOnlyNarrows: whatever a repository's own file says, no delivery leads to more
// with it than without it, on a day on which any number of others came before; and all of the
// day together stays within each limit of the operator, counted by the operator's budgets.
func TestARepositoryOnlyNarrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		operators := parse(t, "rules: ["+strings.Join(rapid.SliceOfN(drawRule(", project: p"), 1, 4).Draw(t, "operator"), ", ")+"]")
		own, err := intake.ParseNarrowing("x", []byte("rules: ["+strings.Join(rapid.SliceOfN(drawRule(""), 0, 4).Draw(t, "repository"), ", ")+"]"))
		if err != nil {
			t.Fatal(err)
		}
		day := counters{}
		for range rapid.IntRange(1, 8).Draw(t, "triggers") {
			t1 := drawTrigger(t)
			wide, narrow := operators.Decide(&t1, nil, day.used, now), operators.Decide(&t1, own, day.used, now)
			if why := wider(&narrow, &wide); why != "" {
				t.Fatalf("%s: %+v than %+v", why, narrow, wide)
			}
			if !letsIn(&narrow) {
				continue
			}
			day.add(&narrow)
			for _, b := range wide.Limits {
				if count, usd := day.used(b.Key); b.Count > 0 && count > b.Count || b.USD > 0 && usd > b.USD {
					t.Fatalf("with the repository's rules %d for $%.2f were let in under %+v", count, usd, b)
				}
			}
		}
	})
}

// TestSmallBudgetsCountAsTheOperators: a repository that gives each intent a
// cent lets no more of them in than its operator does.
func TestSmallBudgetsCountAsTheOperators(t *testing.T) {
	rules := parse(t, "rules: [{when: {permission: read}, do: go, project: shop, budget_usd: 5, limit: {per: day, usd: 10}}]")
	own, err := intake.ParseNarrowing("x", []byte("rules: [{do: go, budget_usd: 0.01}]"))
	if err != nil {
		t.Fatal(err)
	}
	day, let := counters{}, 0
	for range 5 {
		t1 := issue()
		if d := rules.Decide(&t1, own, day.used, now); letsIn(&d) {
			let++
			day.add(&d)
		}
	}
	if let != 2 {
		t.Errorf("%d are let in", let)
	}
}

// TestTeamsOfRules: a file names few teams, and those of rules about another
// repository are not asked for.
func TestTeamsOfRules(t *testing.T) {
	rules := parse(t, `rules: [{when: {team: core, repository: shop/web}, do: ask, project: p}, {when: {team: Core}, do: ignore},
  {when: {team: acme/ops, repository: other/*}, do: ignore}, {do: ignore}]`)
	for repository, want := range map[string]string{"shop/web": "[core]", "Other/x": "[Core acme/ops]", "x/y": "[Core]"} {
		if got := fmt.Sprint(rules.Teams(repository)); got != want {
			t.Errorf("%s: %s, want %s", repository, got, want)
		}
	}
	if got := (*intake.Rules)(nil).Teams("shop/web"); got != nil {
		t.Errorf("no rules name %v", got)
	}
	many := "rules: [" + strings.Repeat("{do: ignore, when: {team: t%d}}, ", 21) + "]"
	for i := range 21 {
		many = strings.Replace(many, "%d", fmt.Sprint(i), 1)
	}
	for text, want := range map[string]string{
		many: "rules: name 21 teams; at most 20 are allowed",
		"rules: [{do: ignore, when: {team: a/../b}}]": "rules[0].when.team: has to be the name of a team",
		"rules: [{do: ignore, when: {team: 'a b'}}]":  "rules[0].when.team: has to be the name of a team",
	} {
		for _, read := range []func(string, []byte) (*intake.Rules, error){intake.Parse, intake.ParseNarrowing} {
			if _, err := read("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.60s: %v, want %s", text, err, want)
			}
		}
	}
}

// TestTeamThatCannotBeRead: its rule does not match and says why; where that
// rule is the stricter one, a person is asked.
func TestTeamThatCannotBeRead(t *testing.T) {
	t1 := issue()
	t1.Author.Unread = []string{"core"}
	for text, want := range map[string]intake.Do{
		"rules: [{when: {team: core, permission: read}, do: go, project: p}]":                                                 intake.Ignore,
		"rules: [{when: {team: core, permission: read}, do: go, project: p}, {when: {permission: read}, do: go, project: p}]": intake.Go,
		"rules: [{when: {team: core}, do: ignore}, {when: {permission: read}, do: go, project: p}]":                           intake.Ask,
		"rules: [{when: {team: core}, do: ask, project: p}, {when: {permission: read}, do: go, project: p}]":                  intake.Ask,
		"rules: [{when: {team: core, title: none}, do: go, project: p}, {do: ask, project: p}]":                               intake.Ask,
	} {
		text = strings.Replace(text, "title: none", "title: none, permission: read", 1)
		d := parse(t, text).Decide(&t1, nil, unused, now)
		if d.Do != want || !strings.Contains(d.Explain(), "no  rule 1 (intake.yaml): the forge does not show our account the members of team core\n") {
			t.Errorf("%s: %s, want %s\n%s", text, d.Do, want, d.Explain())
		}
	}
}

// TestARepositoryAsksAboutEverything: a repository's rule that asks is about
// commands and programs, too, which the operator lets go.
func TestARepositoryAsksAboutEverything(t *testing.T) {
	rules := parse(t, `rules: [{when: {is: bot, asker_id: 9}, do: go, project: p}, {when: {command: run, permission: read}, do: go, project: p}]`)
	own, err := intake.ParseNarrowing("x", []byte("rules: [{do: ask}]"))
	if err != nil {
		t.Fatal(err)
	}
	byBot := issue()
	byBot.Author = intake.Account{ID: 9, Login: "dep", Kind: intake.Bot, Permission: intake.Write}
	for _, t1 := range []intake.Trigger{byBot, comment(issue().Author, intake.Run)} {
		if d := rules.Decide(&t1, nil, unused, now); d.Do != intake.Go {
			t.Errorf("the operator: %s", d.Explain())
		}
		if d := rules.Decide(&t1, own, unused, now); d.Do != intake.Ask {
			t.Errorf("with the repository's: %s", d.Explain())
		}
	}
}

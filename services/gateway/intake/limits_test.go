package intake_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

func TestLimits(t *testing.T) {
	rules := parse(t, `
rules:
  - {name: labelled, when: {label: forge, permission: write}, do: go, project: shop, budget_usd: 5, limit: {per: author, count: 3, usd: 12}}
`)
	t1 := issue()
	for used, want := range map[[2]int]string{
		{0, 0}: "", {2, 7}: "", {3, 0}: "the limit of 3 a day for each author is reached", {1, 8}: "the limit of $12.00 a day for each author would be exceeded",
	} {
		d := rules.Decide(&t1, nil, func(key string) (int, float64) {
			if key != `2026-05-04 author work/7 "labelled"` { // of the asker, who put the label on
				t.Errorf("counted under %q", key)
			}
			return used[0], float64(used[1])
		}, now)
		if d.Refused != want || d.Do != intake.Go {
			t.Errorf("with %v used: %q, want %q", used, d.Refused, want)
		}
	}
}

// TestEverythingIsCounted: what a rule without a limit lets in counts for the
// limits of others, and what one rule lets in counts for no other rule.
func TestEverythingIsCounted(t *testing.T) {
	rules := parse(t, `
rules:
  - {name: free, when: {title: Free}, do: ask, project: shop}
  - {name: few, when: {title: Few}, do: ask, project: shop, limit: {per: repository, count: 2}}
  - {name: some, do: ask, project: shop, limit: {per: day, count: 4}}
`)
	counted := map[string]int{}
	used := func(key string) (int, float64) { return counted[key], 0 }
	let := func(title string) string {
		t1 := issue()
		t1.Title = title
		d := rules.Decide(&t1, nil, used, now)
		if d.Refused == "" {
			for _, c := range d.Counts {
				counted[c.Key]++
			}
		}
		return d.Refused
	}
	for i, step := range [][2]string{
		{"Free", ""},
		{"Few", ""},
		{"Some", ""},
		{"Few", ""},
		{"Few", "the limit of 2 a day for each repository is reached"},
		{"Some", "the limit of 4 a day for each day is reached"},
		{"Free", ""},
	} {
		if got := let(step[0]); got != step[1] {
			t.Errorf("step %d, %s: %q, want %q", i, step[0], got, step[1])
		}
	}
}

// TestARepositoryWidensNoLimit: an operator's limit counts the operator's
// budget, whatever smaller one a repository gives.
func TestARepositoryWidensNoLimit(t *testing.T) {
	rules := parse(t, "rules: [{when: {permission: read}, do: go, project: shop, budget_usd: 5, limit: {per: day, usd: 10}}]")
	own, err := intake.ParseNarrowing("x", []byte("rules: [{do: go, budget_usd: 0.0001}]"))
	if err != nil {
		t.Fatal(err)
	}
	t1 := issue()
	if d := rules.Decide(&t1, own, func(string) (int, float64) { return 1, 9 }, now); d.Refused == "" {
		t.Errorf("a repository's small budget dodges the operator's limit: %+v", d)
	}
}

// TestPatternsAreBounded: a pattern is refused, by its field, before it is
// compiled if it could take long on a long text.
func TestPatternsAreBounded(t *testing.T) {
	long := "'(?s)" + strings.Repeat(".{0,999}", 4) + "x'"
	many := "rules: [" + strings.Repeat("{do: ignore, when: {body: '(?s).{0,250}x'}}, ", 9) + "]"
	nested := "'((a|b|cd){30}){30}'"
	for text, want := range map[string]string{
		"rules: [{do: ignore, when: {body: " + long + "}}]":    "rules[0].when.body: is too large",
		"rules: [{do: ignore, when: {title: " + nested + "}}]": "rules[0].when.title: is too large",
		many: "rules[1].when.body: is too large",
	} {
		if _, err := intake.ParseNarrowing("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90s: %v, want %s", text, err, want)
		}
	}
	if _, err := intake.Parse("x", []byte(many)); err != nil {
		t.Errorf("an operator may have some patterns: %v", err)
	}
	if _, err := intake.Parse("x", []byte("rules: ["+strings.Repeat("{do: ignore, when: {body: '(?s).{0,250}x'}}, ", 60)+"]")); err == nil {
		t.Error("an operator may have any number of large patterns")
	}
	if _, err := intake.ParseNarrowing("x", []byte(`rules: [{do: ignore, when: {title: '(?i)\b(?:wip|draft)\b', body: '^.{0,80}$'}}]`)); err != nil {
		t.Errorf("an ordinary pattern is refused: %v", err)
	}
}

// TestALongTextDodgesNoPattern: what patterns do not see of a text cannot be
// told from what a rule ignores, and is let go by none.
func TestALongTextDodgesNoPattern(t *testing.T) {
	t1 := issue()
	t1.Body = strings.Repeat("x ", 40<<10) + "secret"
	for text, want := range map[string]intake.Do{
		"rules: [{when: {body: secret}, do: ignore}, {when: {permission: read}, do: go, project: p}]":                intake.Ignore,
		"rules: [{when: {body: secret}, do: ask, project: p}, {when: {permission: read}, do: go, project: p}]":       intake.Ask,
		"rules: [{when: {body: x, permission: read}, do: go, project: p}]":                                           intake.Ignore,
		"rules: [{when: {body: x, label: no}, do: ask, project: p}, {when: {permission: read}, do: go, project: p}]": intake.Go,
	} {
		if d := parse(t, text).Decide(&t1, nil, unused, now); d.Do != want {
			t.Errorf("%s: %s, want %s\n%s", text, d.Do, want, d.Explain())
		}
	}
	rules := parse(t, "rules: [{when: {permission: read}, do: go, project: p}]")
	for text, want := range map[string]intake.Do{"{when: {body: secret}, do: ignore}": intake.Ignore, "{when: {body: secret}, do: ask}": intake.Ask} {
		own, err := intake.ParseNarrowing("x", []byte("rules: ["+text+"]"))
		if err != nil {
			t.Fatal(err)
		}
		if d := rules.Decide(&t1, own, unused, now); d.Do != want {
			t.Errorf("a repository's %s: %s, want %s", text, d.Do, want)
		}
	}
}

// TestExplainIsLines: no name that came from a forge or a file adds a line to an explanation.
func TestExplainIsLines(t *testing.T) {
	t1 := issue()
	t1.Author.Login = "eve\nyes all: matches: go\x1b[2J\u202e" + strings.Repeat("x", 1000)
	d := parse(t, "rules: [{when: {team: x}, do: ask, project: p}]").Decide(&t1, nil, unused, now)
	if got := d.Explain(); strings.Count(got, "\n") != 3 || strings.ContainsAny(got, "\x1b\u202e") || len(got) > 500 {
		t.Errorf("explained as %q", got)
	}
	d = intake.Decision{Do: intake.Ask, Rule: "a", Steps: []intake.Step{{Rule: "a\nyes b", Matched: true, Why: "matches"}}}
	if got := d.Explain(); strings.Count(got, "\n") != 2 {
		t.Errorf("explained as %q", got)
	}
}

// TestRepositoriesCountApart: what one repository's own rules let in counts for
// no other repository, and not for the operator's limits once more.
func TestRepositoriesCountApart(t *testing.T) {
	rules := parse(t, "rules: [{do: ask, project: shop}]")
	own, err := intake.ParseNarrowing("x", []byte("rules: [{do: ask, limit: {per: day, count: 1}}]"))
	if err != nil {
		t.Fatal(err)
	}
	here, there := issue(), issue()
	there.RepositoryID++
	counted := map[string]int{}
	for _, c := range rules.Decide(&here, own, unused, now).Counts {
		if counted[c.Key]++; counted[c.Key] > 1 {
			t.Errorf("counted twice under %q", c.Key)
		}
	}
	used := func(key string) (int, float64) { return counted[key], 0 }
	if d := rules.Decide(&here, own, used, now); d.Refused == "" {
		t.Error("a repository's own limit does not hold")
	}
	if d := rules.Decide(&there, own, used, now); d.Refused != "" {
		t.Errorf("a repository's limit holds for another one: %s", d.Refused)
	}
}

package intake_test

import (
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

var now = time.Date(2026, 5, 4, 23, 59, 59, 0, time.UTC)

// unused is the account of limits of which nothing is used up.
func unused(string) (int, float64) { return 0, 0 }

func parse(t interface{ Fatal(args ...any) }, text string) *intake.Rules {
	rules, err := intake.Parse("intake.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// An issue of eve, an outsider, that ada labelled.
func issue() intake.Trigger {
	ada := intake.Account{ID: 7, Login: "ada", Kind: intake.Member, Permission: intake.Write, Teams: []string{"core"}}
	eve := intake.Account{ID: 8, Login: "eve", Kind: intake.Outsider, Permission: intake.Read}
	return intake.Trigger{
		Forge: "work", Repository: "shop/web", RepositoryID: 3, Number: 12, Event: intake.Issue, Title: "Fix the crash", Body: "It crashes.",
		Labels: []intake.Label{{Name: "Forge", By: ada}, {Name: "eves", By: eve}}, Author: eve,
	}
}

// comment is the same issue with a command of somebody.
func comment(by intake.Account, verb intake.Verb) intake.Trigger {
	t := issue()
	t.Event, t.Commander, t.Command = intake.Comment, by, verb
	return t
}

func TestConditions(t *testing.T) {
	ada, eve := issue().Labels[0].By, issue().Author
	bot := intake.Account{ID: 9, Login: "dep[bot]", Kind: intake.Bot, Permission: intake.Admin}
	byBot, labelledByBot := issue(), issue()
	byBot.Author = bot
	renamed, unknown, nobody, unnumbered := issue(), issue(), issue(), issue()
	renamed.Author.Login = "ada"           // eve took the name that ada gave up
	unknown.Author.Kind = ""               // the forge did not say what wrote it
	nobody.Labels[0].By = intake.Account{} // nor who put the label on
	unnumbered.Author.ID = 0
	nested := issue() // GitLab has groups in groups
	nested.Repository = "shop/front/web"
	labelledByBot.Labels[0].By = bot
	for _, c := range []struct {
		when string
		t    intake.Trigger
		want bool
	}{
		{"{}", issue(), true},
		{"{forge: work, repository: Shop/Web, event: issue}", issue(), true},
		{"{forge: other}", issue(), false},
		{"{repository: shop/*}", issue(), true},
		{"{repository: sho/*}", issue(), false},
		{"{repository: shop/webs}", issue(), false},
		{"{repository: shop/front/web}", nested, true},
		{"{repository: Shop/Front/*}", nested, true},
		{"{repository: shop/*}", nested, true},
		{"{repository: shop/fro/*}", nested, false},
		{"{repository: front/*}", nested, false},
		{"{repository: shop/web}", nested, false},
		{"{event: comment}", issue(), false},
		{"{label: forge}", issue(), true},
		{"{label: other}", issue(), false},
		{"{label: forge, permission: write}", issue(), true},  // ada put it on
		{"{label: eves, permission: write}", issue(), false},  // eve may label, and no more
		{"{label: forge, permission: admin}", issue(), false}, // ada is no admin
		{"{permission: triage}", issue(), false},              // eve wrote it
		{"{permission: read}", issue(), true},
		{"{label: forge, team: Core}", issue(), true},
		{"{team: core}", issue(), false},
		{"{is: outsider}", issue(), true},
		{"{is: member}", issue(), false},
		{"{label: forge, is: member}", issue(), true},
		{"{author: EVE}", issue(), true},
		{"{author: ada}", issue(), false},
		{"{label: forge, asker: ada, author: eve}", issue(), true},
		{"{author_id: 8}", issue(), true},
		{"{author: ada}", renamed, true},
		{"{author: ada, author_id: 7}", renamed, false},
		{"{asker_id: 7}", renamed, false},
		{"{label: forge, asker_id: 7}", issue(), true},
		{"{label: forge, asker_id: 8}", issue(), false},
		{"{}", unknown, false},
		{"{label: forge}", unknown, false}, // ada asks, but what wrote the text could be a bot
		{"{label: forge, author_id: 8}", unknown, true},
		{"{label: forge}", nobody, false},
		{"{}", unnumbered, false},
		{"{label: forge}", unnumbered, false},
		{"{title: '(?i)^fix'}", issue(), true},
		{"{title: '^crash'}", issue(), false},
		{"{body: 'crashes\\.$'}", issue(), true},
		{"{}", comment(ada, intake.Run), false}, // a rule lets commands in only if it says so
		{"{command: run, permission: write}", comment(ada, intake.Run), true},
		{"{command: run, permission: write}", comment(eve, intake.Run), false},
		{"{command: run, label: forge, permission: write}", comment(eve, intake.Run), false}, // the label is ada's, the command is not
		{"{command: run}", comment(ada, intake.Retry), false},
		{"{command: run}", issue(), false},
		{"{}", byBot, false},
		{"{author: 'dep[bot]'}", byBot, false}, // it asks, too
		{"{author: 'dep[bot]', label: forge}", byBot, true},
		{"{label: forge}", byBot, false},
		{"{is: bot, asker: 'dep[bot]'}", byBot, true},
		{"{is: bot, asker: 'other[bot]'}", byBot, false},
		{"{is: bot, asker_id: 9}", byBot, true},
		{"{label: forge}", labelledByBot, false},
		{"{label: forge, is: bot, asker: 'dep[bot]'}", labelledByBot, true},
	} {
		rules := parse(t, "rules: [{when: "+c.when+", do: ask, project: shop}]")
		d := rules.Decide(&c.t, nil, unused, now)
		if got := d.Do == intake.Ask; got != c.want {
			t.Errorf("%s: %v, want %v\n%s", c.when, got, c.want, d.Explain())
		}
	}
}

func TestFirstMatchDecides(t *testing.T) {
	rules := parse(t, `
rules:
  - {name: crashes, when: {title: crash, permission: admin}, do: go, project: shop}
  - {name: never eve, when: {asker: eve}, do: ignore}
  - {name: all, do: ask, project: shop, type: fix, agent: claude, budget_usd: 2, priority: 3}
`)
	t1 := issue()
	want := `no  crashes (intake.yaml): it asks for the permission admin; eve has "read"
yes never eve (intake.yaml): matches: ignore
do: ignore
`
	if d := rules.Decide(&t1, nil, unused, now); d.Explain() != want {
		t.Errorf("explained as\n%s", d.Explain())
	}
	command := comment(issue().Author, intake.Run)
	if d := rules.Decide(&command, nil, unused, now); d.Rule != "never eve" {
		t.Errorf("a rule that ignores eve does not ignore her commands: %s", d.Explain())
	}
	t1.Author = t1.Labels[0].By
	d := rules.Decide(&t1, nil, unused, now)
	if d.Rule != "all" || d.Do != intake.Ask || d.Risk != forge.RiskHigh || d.Type != "fix" || d.Agent != "claude" || d.BudgetUSD != 2 || d.Priority != 3 {
		t.Errorf("decided %+v", d)
	}
	if d := parse(t, "rules: []").Decide(&t1, nil, unused, now); d.Do != intake.Ignore || !strings.Contains(d.Explain(), "no rule matches") {
		t.Errorf("without rules: %s", d.Explain())
	}
}

func TestBadRules(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{do: run}]": `rules[0].do: is "run"; it can be one of [ignore ask go]`,
		"rules: [{}]":        "rules[0].do: is missing",
		"rules: [{do: go}]":  "rules[0].project: is missing",
		"rules: [{do: go, project: p, when: {asker: ada}}]":                                            "rules[0].when: needs asker_id or permission",
		"rules: [{do: ask, project: p, when: {asker_id: -1}}]":                                         "rules[0].when.asker_id: has to be positive",
		"rules: [{do: ask, project: p, when: {author_id: -1}}]":                                        "rules[0].when.author_id: has to be positive",
		"rules: [{do: ignore, name: \"a\\nyes b\"}]":                                                   "rules[0].name: has to be one line",
		"rules: [{do: ignore, name: " + strings.Repeat("a", 101) + "}]":                                "rules[0].name: has to be one line",
		"rules: [{do: ignore, name: rule 2}, {do: ignore}]":                                            "rules[1].name: is that of another rule",
		"rules: [{do: go, project: A/B}]":                                                              "rules[0].project: ",
		"rules: [{do: ignore, when: {title: '('}}]":                                                    "rules[0].when.title: is not a regular expression",
		"rules: [{do: ignore, when: {body: '" + strings.Repeat("a", 501) + "'}}]":                      "rules[0].when.body: has 501 bytes",
		"rules: [{do: ignore, when: {permission: none}}]":                                              "rules[0].when.permission: is",
		"rules: [{do: ignore, when: {labels: x}}]":                                                     "rules[0].when.labels: ",
		"rules: [{do: ignore, when: {repository: '*'}}]":                                               "rules[0].when.repository: has to be",
		"rules: [{do: ignore, when: {repository: a/..}}]":                                              "rules[0].when.repository: has to be",
		"rules: [{do: ignore, when: {forge: A}}]":                                                      "rules[0].when.forge: ",
		"rules: [{do: ignore, when: {command: run, event: issue}}]":                                    "rules[0].when.command: ",
		"rules: [{do: ignore, when: {command: destroy}}]":                                              "rules[0].when.command: ",
		"rules: [{do: go, project: p, when: {is: bot}}]":                                               "rules[0].when.asker: is missing",
		"rules: [{do: go, project: p, budget_usd: -1}]":                                                "rules[0].budget_usd: ",
		"rules: [{do: go, project: p, budget_usd: .nan}]":                                              "rules[0].budget_usd: ",
		"rules: [{do: go, project: p, limit: {per: author}}]":                                          "rules[0].limit: needs",
		"rules: [{do: go, project: p, limit: {per: week, count: 1}}]":                                  "rules[0].limit.per: ",
		"rules: [{do: go, project: p, limit: {per: day, usd: 1}}]":                                     "rules[0].limit.usd: counts the budgets",
		"rules: [{do: go, project: p, risk: none}]":                                                    "rules[0].risk: ",
		"rules: [" + strings.Repeat("{do: ignore},", 201) + "]":                                        "rules: has 201 rules",
		"rules: [{do: ignore, when: {title: " + `"` + strings.Repeat("(a{900}){900}", 1) + `"` + "}}]": "rules[0].when.title: is not a regular expression",
		"rules: [{do: go, project: p, recipe: '../x'}]":                                                "rules[0].recipe: ",
		"rules: [{do: go, project: p, as: ada}]":                                                       "rules[0].as: ",
		"rules: [{do: ignore, when: {event: push}}]":                                                   "rules[0].when.event: ",
		"rules: [{do: ignore, when: {is: robot}}]":                                                     "rules[0].when.is: ",
		"rules: [{do: go, project: p, priority: 1000001}]":                                             "rules[0].priority: ",
		"rules: [{name: a, do: ignore}, {do: ignore, when: {team: x}}]\nrules: []":                     "rules",
	} {
		if _, err := intake.Parse("intake.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	for _, field := range []string{"as: person", "project: p", "type: x", "recipe: x", "agent: x", "priority: 1", "when: {forge: a}", "when: {repository: a/b}"} {
		_, err := intake.ParseNarrowing("x.yaml", []byte("rules: [{do: ask, "+field+"}]"))
		if err == nil || !strings.Contains(err.Error(), "is the operator's to say") {
			t.Errorf("a repository may say %s: %v", field, err)
		}
	}
}

func TestEventID(t *testing.T) {
	for n, want := range map[int]string{1: "work/3/issue/12", 2: "work/3/issue/12#2"} {
		if got, err := intake.EventID("work", 3, 12, n); got != want || err != nil {
			t.Errorf("trigger %d is %q, %v", n, got, err)
		}
	}
	for _, bad := range []struct {
		forge         string
		repository, n int64
	}{{"a/b", 1, 1}, {"", 1, 1}, {"work", 0, 1}, {"work", 1, -1}} {
		if got, err := intake.EventID(bad.forge, bad.repository, bad.n, 1); err == nil {
			t.Errorf("%+v is %q", bad, got)
		}
	}
}

func TestCheckRepository(t *testing.T) {
	for name, want := range map[string]bool{
		"shop/web": true, "a.b/c_d-e": true, "shop": false, "shop/": false, "/web": false, "../web": false, "shop/..": false, "shop/web/x": false,
		"shop/we%2fb": false, "shop/web?x": false, "shop/web\n": false, "shop/wéb": false, strings.Repeat("a", 101) + "/b": false,
	} {
		if err := intake.CheckRepository(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("rules: [{when: {label: forge, permission: write}, do: go, project: p, limit: {per: day, count: 1}}]")
	f.Add("rules:\n  - do: ask\n    when:\n      title: (a|b)+\n    project: x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string, []byte) (*intake.Rules, error){intake.Parse, intake.ParseNarrowing} {
			rules, err := read("f", []byte(text))
			if err != nil {
				continue
			}
			t1 := issue()
			if d := rules.Decide(&t1, rules, unused, now); d.Do != intake.Ignore && d.Rule == "" || d.Explain() == "" {
				t.Errorf("%q decides %+v", text, d)
			}
		}
	})
}

package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// TestSchedules reads schedules with all that their intents can have.
func TestSchedules(t *testing.T) {
	p, err := config.Parse([]byte(`
recipes:
  update: {run: make update, params: [{name: LEVEL}]}
checks: {tests: go test ./...}
schedules:
  - {name: nightly, cron: 30 2 * * 1-5, zone: Europe/Berlin, missed: skip, intent: {title: Update, recipe: update, with: {LEVEL: minor}, labels: [a]}}
  - name: goal
    cron: '@weekly'
    intent:
      title: Mend
      body: the flakiest test
      risk: low
      budget_usd: 2.5
      criteria: [nothing is flaky, {check: tests}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.ScheduleNames(), " "); got != "nightly goal" {
		t.Errorf("the schedules are %s", got)
	}
	n, g := p.Schedules[0].Schedule(), p.Schedules[1].Schedule()
	if n.Cron != "30 2 * * 1-5" || n.Zone != "Europe/Berlin" || n.Missed != "skip" || n.Intent.Body != "Update" || n.Intent.With["LEVEL"] != "minor" {
		t.Errorf("%+v", n)
	}
	if g.Intent.Body != "the flakiest test" || g.Intent.Risk != forge.RiskLow || g.Intent.BudgetUSD != 2.5 || len(g.Intent.Checks) != 1 || !g.Intent.IsGoal() {
		t.Errorf("%+v", g)
	}
	if len(p.Powers()) != 3 { // of the recipe, its parameter, and the check
		t.Errorf("a schedule by itself does something: %+v", p.Powers())
	}
}

// TestWrongSchedules names the line and the field of each mistake, all at once.
func TestWrongSchedules(t *testing.T) {
	_, err := config.Parse([]byte(`schedules:
  - {name: Nightly, cron: '@daily', intent: {title: a}}
  - {name: b, cron: 61 * * * *, intent: {title: a}}
  - {name: c, cron: '@daily', zone: Nowhere, intent: {title: a}}
  - {name: d, cron: '@daily', missed: twice, intent: {title: a}}
  - {name: e, cron: '@daily'}
  - {name: f, cron: '@daily', intent: {title: a, recipe: gone}}
  - {name: g, cron: '@daily', intent: {title: a, agent: gone}}
  - {name: h, cron: '@daily', intent: {title: a, criteria: [{check: gone}]}}
  - {name: i, cron: '@daily', intent: {title: a, criteria: [{type: command, command: 'true'}]}}
  - {name: j, cron: '@daily', intent: {title: a, depends_on: [x]}}
  - {name: k, cron: '@daily', intent: {title: a, with: {A: b}}}
  - {name: l, cron: '@daily', intent: {title: a}}
  - {name: l, cron: '@daily', intent: {title: a}}
`))
	for n, field := range []string{
		"name", "cron", "zone", "missed", "intent.title", "intent.recipe", "intent.agent", "intent.criteria", "intent.criteria", "intent.depends_on", "intent.with",
		"", "name",
	} {
		if want := field + ": "; field != "" && !hasLine(err, n+2, want) {
			t.Errorf("line %d has no error about %s in:\n%v", n+2, field, err)
		}
	}
}

// hasLine reports whether an error has a line about a line of the file, and a field there.
func hasLine(err error, line int, field string) bool {
	for text := range strings.Lines(err.Error()) {
		if strings.HasPrefix(text, fmt.Sprintf("pfl-forge.yaml:%d: ", line)) && strings.Contains(text, field) {
			return true
		}
	}
	return false
}

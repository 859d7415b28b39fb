package forgedir

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// uncomment removes the # in front of every setting.
func uncomment(text, mark string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "##") && !strings.Contains(l, "$schema") {
			l = strings.TrimPrefix(l, mark)
		}
		b.WriteString(l)
	}
	return b.String()
}

func TestConfigTemplate(t *testing.T) {
	p, err := config.Parse([]byte(ConfigTemplate))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), p); diff != "" {
		t.Errorf("as it is (-default +got):\n%s", diff)
	}
	p, err = config.Parse([]byte(uncomment(ConfigTemplate, "#")))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Verify) != 2 || len(p.Recipes) != 3 || p.BaseBranch != "main" || len(p.WorktreeSetup) != 1 ||
		len(p.Policy.TrustedOrigins) != 1 || len(p.Policy.SandboxRead) != 1 || len(p.Policy.SandboxWrite) != 1 ||
		len(p.Policy.Approvers) != 1 || len(p.Calls.Escalate.Implement) != 2 || len(p.Calls.Escalate.Review) != 1 || len(p.Calls.BestOfTwo.When) != 1 ||
		p.Review.Second.Agent == "" || len(p.Roles) != 1 || len(p.Fallback) != 2 || len(p.Agents) != 2 || len(p.Checks) != 2 || len(p.Schedules) != 1 {
		t.Errorf("an example is missing: %+v", p)
	}
	for _, key := range keys(reflect.TypeFor[config.Project]()) {
		if !strings.Contains(ConfigTemplate, key+":") {
			t.Errorf("%s is not shown", key)
		}
	}
	for _, name := range config.Agents() {
		if !regexp.MustCompile(`(?m)^## .*\b` + name + `\b`).MatchString(ConfigTemplate) {
			t.Errorf("the agent %s is not named", name)
		}
	}
	d := config.Default()
	p.Verify, p.Recipes, p.BaseBranch, p.WorktreeSetup = d.Verify, d.Recipes, d.BaseBranch, d.WorktreeSetup
	p.Policy.TrustedOrigins, p.Policy.SandboxRead = d.Policy.TrustedOrigins, d.Policy.SandboxRead
	p.Policy.SandboxWrite, p.Policy.Approvers = d.Policy.SandboxWrite, d.Policy.Approvers
	p.Policy.Approvals.NotRequester = d.Policy.Approvals.NotRequester
	p.Review.Second, p.Checks, p.Merging = d.Review.Second, d.Checks, d.Merging
	p.Roles, p.Fallback, p.Agents, p.Calls.Escalate = d.Roles, d.Fallback, d.Agents, d.Calls.Escalate
	p.Calls.BestOfTwo, p.Schedules = d.Calls.BestOfTwo, d.Schedules
	if diff := cmp.Diff(d, p); diff != "" {
		t.Errorf("it shows other defaults (-default +shown):\n%s", diff)
	}
}

// keys returns the names of all settings, however deep.
func keys(of reflect.Type) (names []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return keys(of.Elem())
	case reflect.Struct:
		for f := range of.Fields() {
			if name := f.Tag.Get("yaml"); name != ",inline" {
				names = append(names, name)
			}
			if f.Type != reflect.TypeFor[config.ScheduledIntent]() { // the example of a draft shows these
				names = append(names, keys(f.Type)...)
			}
		}
	}
	return names
}

func TestExampleDraft(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/as-it-is.md", ExampleDraft)
	// Criteria are judged where no recipe's check decides: an intent has one or the other.
	all := strings.Replace(uncomment(ExampleDraft, "# "), "Add a", "# Add a", 1)
	d.put(layout.Drafts+"/goal.md", regexp.MustCompile(`(?m)^(recipe|with|agent): .*\n`).ReplaceAllString(all, ""))
	d.put(layout.Drafts+"/recipe.md", regexp.MustCompile(`(?m)^(criteria|goal): .*\n`).ReplaceAllString(all, ""))
	inputs, problems := d.drafts()
	if len(inputs) != 3 || len(problems) > 0 {
		t.Fatalf("got %v %v", inputs, problems)
	}
	for _, in := range inputs {
		i := in.Draft()
		if i.Title != "Add a password reset link to the login page" {
			t.Errorf("%s: title %q", i.ID, i.Title)
		}
		goal, recipe := len(i.Criteria) == 1 && i.Goal.Iterations() == 5, i.Recipe == "format" && i.With["NAME"] == "value"
		if (i.ID != "as-it-is") != (len(i.DependsOn) == 1) || (i.ID == "goal") != goal || (i.ID == "recipe") != recipe {
			t.Errorf("%s: %+v", i.ID, i)
		}
	}
}

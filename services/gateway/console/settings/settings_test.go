package settings_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/settings"
)

// TestEverySettingHasAPlace: a new setting is put below a heading, and not among the others.
func TestEverySettingHasAPlace(t *testing.T) {
	s := setup.InForce{}
	for _, one := range config.Default().Settings() {
		s.Settings = append(s.Settings, setup.Setting{Name: one.Name, Value: one.Value, From: one.By})
	}
	s.Settings = append(s.Settings, setup.Setting{Name: "roles.review", From: "repository"}, setup.Setting{Name: "mergers", From: "repository"})
	p := settings.Of(settings.Query{}, &s, false)
	rows := 0
	for _, g := range p.Groups {
		rows += len(g.Rows)
		if len(g.Rows) == 0 {
			t.Errorf("%s has no rows", g.Heading)
		}
		if g.Heading == "Others" && (len(g.Rows) != 1 || g.Rows[0].Name != "mergers") {
			t.Errorf("without a place are %+v", g.Rows)
		}
	}
	if rows != len(s.Settings) || p.Differ != 2 || len(p.Groups) != 8 {
		t.Errorf("%d rows of %d settings in %d groups, %d differ", rows, len(s.Settings), len(p.Groups), p.Differ)
	}
}

// TestRows: rows say what differs, what is long, and what a value means that
// does not say so itself.
func TestRows(t *testing.T) {
	s := setup.InForce{Settings: []setup.Setting{
		{Name: "budget.day_usd", Value: "0", From: "repository"},
		{Name: "budget.call_usd", Value: "0", From: "default"},
		{Name: "policy.approvers", From: "default"},
		{Name: "policy.protected_paths", Value: strings.Repeat("x\n", 6) + "y", From: "default"},
		{Name: "policy.sandbox", Value: "unconfined", From: "operator"},
		{Name: "verify", Value: "a\nb", From: "tomorrow"},
	}}
	got := map[string]settings.Row{}
	for _, g := range settings.Of(settings.Query{}, &s, false).Groups {
		for _, r := range g.Rows {
			got[r.Name] = r
		}
	}
	for name, want := range map[string]settings.Row{
		"budget.day_usd":         {Entries: []string{"0"}, Differs: true, Source: "pfl-forge.yaml", Hint: "no limit"},
		"budget.call_usd":        {Entries: []string{"0"}, Source: "the default"},
		"policy.approvers":       {Source: "the default", Hint: "everybody with the role"},
		"policy.protected_paths": {Entries: []string{"x", "x", "x", "x", "x", "x", "y"}, Long: true, Source: "the default"},
		"policy.sandbox":         {Entries: []string{"unconfined"}, Differs: true, Source: "the operator"},
		"verify":                 {Entries: []string{"a", "b"}, Differs: true, Source: "tomorrow"},
	} {
		r := got[name]
		if !slices.Equal(r.Entries, want.Entries) || r.Long != want.Long || r.Differs != want.Differs || r.Source != want.Source || r.Hint != want.Hint {
			t.Errorf("%s is %+v, want %+v", name, r, want)
		}
	}
	if p := settings.Of(settings.Query{Changed: true}, &s, false); len(p.Groups) != 3 || p.Differ != 3 {
		t.Errorf("what differs is %+v", p.Groups)
	}
}

// TestScheduleLeadsToAnIntent leaves out what is no id, since it becomes an address.
func TestScheduleLeadsToAnIntent(t *testing.T) {
	s := setup.InForce{Schedules: []setup.Schedule{{Name: "a", LastIntent: "fine-1"}, {Name: "b", LastIntent: "../../tokens"}}}
	p := settings.Of(settings.Query{}, &s, false)
	if p.Schedules[0].LastIntent != "fine-1" || p.Schedules[1].LastIntent != "" || s.Schedules[1].LastIntent == "" {
		t.Errorf("%+v of %+v", p.Schedules, s.Schedules)
	}
}

// TestParseQuery reads the choices of an address, and names what is wrong.
func TestParseQuery(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "show=all&project=shop": "", "show=changed": "", "show=": "", "show=none": "show: is", "by=x": "no parameter", "project=a&project=b": "twice",
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := settings.ParseQuery(values)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || q.Changed != (text == "show=changed") {
			t.Errorf("%s: %+v, %v", text, q, err)
		}
	}
	for _, changed := range []bool{false, true} {
		for _, c := range (settings.Query{Changed: changed}).Choices("shop") {
			at, err := url.Parse(c.Address)
			if err != nil {
				t.Fatal(err)
			}
			q, err := settings.ParseQuery(at.Query())
			if err != nil || c.Here != (q.Changed == changed) || at.Query().Get("project") != "shop" || at.Path != "/console/settings" {
				t.Errorf("%+v leads to %+v, %v", c, q, err)
			}
		}
	}
}

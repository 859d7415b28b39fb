package create

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/config"
)

func TestFreeID(t *testing.T) {
	taken := map[forge.IntentID]bool{}
	take := func(title string, want forge.IntentID) {
		t.Helper()
		id := freeID(title, taken)
		if _, err := forge.ParseIntentID(string(id)); err != nil || id != want {
			t.Errorf("freeID(%.20q) = %q, want %q (%v)", title, id, want, err)
		}
		taken[id] = true
	}
	take("Add a thing!", "add-a-thing")
	take("add: a thing", "add-a-thing-2")
	take("ADD A THING", "add-a-thing-3")
	take("../../etc/passwd", "etc-passwd")
	take("計画", "ji-hua")
	take("Écrire le manuel", "ecrire-le-manuel")
	take("Ecrire le manuel", "ecrire-le-manuel-2")
	take("計劃", "ji-hua-2") // another word of the same sound
	take("🚀", "intent-ebbc0b28")
	take("🚀", "intent-ebbc0b28-2")
	take("", "intent")
	take("", "intent-2")
	long := strings.Repeat("x", 51) + " yz"
	take(long, forge.IntentID(strings.Repeat("x", 51)))
	take(long, forge.IntentID(strings.Repeat("x", 51)+"-2"))
}

func TestFirstLine(t *testing.T) {
	for body, want := range map[string]string{
		"":                        "",
		"\n \n#\n## A heading\nb": "A heading",
		"plain\nmore":             "plain",
		"  a\tb\x1b[31m  c":       "a b c",
	} {
		if got := FirstLine(body); got != want {
			t.Errorf("firstLine(%q) = %q, want %q", body, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	got, err := values([]string{"A=b=c", "D="})
	if err != nil || len(got) != 2 || got["A"] != "b=c" || got["D"] != "" {
		t.Errorf("values = %q, %v", got, err)
	}
	for _, bad := range [][]string{{"A"}, {"=b"}, {"A=1", "A=2"}, {"PATH=/tmp"}, {"a b=1"}, {"A=\xff"}} {
		if got, err := values(bad); err == nil {
			t.Errorf("values(%q) = %q, want an error", bad, got)
		}
	}
}

func TestCheckNames(t *testing.T) {
	cfg := &config.Project{
		Recipes: map[string]config.Recipe{"format": {}, "rename": {Params: []config.Param{{Name: "TO"}}}},
		Agents:  map[string]config.AgentConfig{"ours": {Command: []string{"x"}}},
	}
	for name, test := range map[string]struct {
		intent forge.Intent
		want   string // part of the error
	}{
		"known":     {forge.Intent{Settings: forge.Settings{Recipe: "format"}}, ""},
		"value":     {forge.Intent{Settings: forge.Settings{Recipe: "rename", With: map[string]string{"TO": "x"}}}, ""},
		"close":     {forge.Intent{Settings: forge.Settings{Recipe: "fromat"}}, "did you mean format?"},
		"far":       {forge.Intent{Settings: forge.Settings{Recipe: "deploy-everything"}}, "there are format, rename"},
		"agent":     {forge.Intent{Settings: forge.Settings{Agent: "codex"}}, ""},
		"own agent": {forge.Intent{Settings: forge.Settings{Agent: "ours"}}, ""},
		"nobody": {
			forge.Intent{Settings: forge.Settings{Agent: "nobody"}},
			`agent: is "nobody"; it can be claude or codex or gemini or opencode or recipe or ours`,
		},
		"parameter": {forge.Intent{Settings: forge.Settings{Recipe: "format", With: map[string]string{"TO": "x"}}}, "no parameter TO"},
	} {
		err := local.CheckNames(cfg, &test.intent)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

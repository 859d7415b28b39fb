package config_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// FuzzParse: a pfl-forge.yaml of any repository is a project that says the same
// when it is read again, or is refused with a list of places and reasons. What
// is taken has no recipe without a name.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../forgedir/template/pfl-forge.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(example), "", "recipes: {a: {run: x}}", "recipes: {docs: {each: ls, run: echo $FORGE_ITEM}}",
		"agents: {a: {command: x}}", "policy: {network: model}",
		"verify: [a, b]", "recipes: {a: {tasks: [{name: a, run: b, depends_on: [a]}]}}", "steps: {review: {agent: none}}", "limits: {timeout: 99999h}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := config.Parse(data)
		if err != nil {
			list, ok := errors.AsType[strictyaml.Errors](err)
			if !ok || len(list) == 0 {
				t.Fatalf("error is %T: %v", err, err)
			}
			for _, e := range list {
				if e.Reason == "" || e.File != config.FileName {
					t.Errorf("%+v", e)
				}
			}
			return
		}
		again, err := config.Parse(data)
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Errorf("read twice: %v %s", err, diff)
		}
		p.Powers()
		for _, name := range p.RecipeNames() {
			if p.ClosestRecipe(name) == "" {
				t.Errorf("recipe %q cannot be found", name)
			}
		}
		for _, name := range p.UsedAgents() {
			p.ModelsOf(name)
		}
	})
}

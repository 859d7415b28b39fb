package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// patterns returns the path of every setting of a type, with * for names and places.
func patterns(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Map, t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return patterns(t.Elem(), path+".*")
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	var out []string
	for f := range t.Fields() {
		at := f.Tag.Get("yaml")
		if at == ",inline" {
			out = append(out, patterns(f.Type, path)...)
			continue
		}
		if at == "schedules" { // walk leaves them out
			continue
		}
		if path != "" {
			at = path + "." + at
		}
		out = append(out, patterns(f.Type, at)...)
	}
	return out
}

// Every setting is in one of the two classes: it can run or weaken something, or it is
// harmless. A new one has to be put into one of them.
func TestClasses(t *testing.T) {
	all := patterns(reflect.TypeFor[Project](), "")
	for _, p := range all {
		if _, ok := classes[p]; !ok {
			t.Errorf("%s is in no class: say in power.go whether it can run or weaken something", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(classes)) {
		if !slices.Contains(all, p) {
			t.Errorf("%s is no setting", p)
		}
	}
}

func TestPowers(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"parallel_workers: 9\nagent: claude": "",
		"policy: {sandbox: require, network: model, command_network: none}": "",
		"triage_tools: [Read]":                                                               "",
		"worker_tools: [Read, Bash, WebFetch]":                                               "!worker_tools=Read|Bash|WebFetch",
		"policy: {protected_paths: []}":                                                      "!policy.protected_paths=",
		"policy: {sandbox_read: [/x]}\nverify: [make, go vet]":                               "!policy.sandbox_read=/x verify=make|go vet",
		"policy: {sandbox_read: [~/.ssh], trusted_origins: [x]}":                             "!policy.sandbox_read=~/.ssh !policy.trusted_origins=x",
		"agents: {a: {command: [x, -y]}}\nroles: {review: a}\nfallback: [codex]\nagent: a\n": "agent=a agents.a.command=x|-y fallback=codex roles.review=a",
		"worktree_dir: /tmp/x\nworktree_setup: [npm ci]":                                     "worktree_dir=/tmp/x worktree_setup=npm ci",
		"recipes: {r: {run: a, each: b, check: c, params: [{name: P, default: d, suggested: [e]}]}}": "recipes.r.check=c recipes.r.each=b " +
			"recipes.r.params.0:P.default=d recipes.r.params.0:P.name=P recipes.r.params.0:P.suggested=e recipes.r.run=a",
		"recipes: {r: {tasks: [{name: n, run: a, check: c}]}}": "recipes.r.tasks.0:n.check=c recipes.r.tasks.0:n.run=a",
	} {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, power := range p.Powers() {
			mark := ""
			if power.Weakens {
				mark = "!"
			}
			got = append(got, mark+power.Setting+"="+strings.ReplaceAll(power.Value, "\n", "|"))
			if power.Means == "" {
				t.Errorf("%s: no words for %s", text, power.Setting)
			}
		}
		if line := strings.Join(got, " "); line != want {
			t.Errorf("%s\n got %s\nwant %s", text, line, want)
		}
		if (Digest(p.Powers()) == "") != (want == "") {
			t.Errorf("%s: digest %q", text, Digest(p.Powers()))
		}
	}
}

// What runs in another way has another digest; what only reads differently has the same.
func TestDigest(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"verify: [a, b]", "verify: [\"a\\nb\"]", "verify: [b, a]", "worktree_setup: [a, b]", "verify: [a]\nworktree_setup: [b]",
		"recipes: {r: {run: a}}", "recipes: {s: {run: a}}", "recipes: {r: {run: a, check: a}}", "policy: {sandbox_read: [/x]}",
		"recipes: {r: {run: a, params: [{name: A, default: ''}]}}", "recipes: {r: {run: a, params: [{name: A}]}}",
	} {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d := Digest(p.Powers())
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %q have the same digest", text, other)
		}
		seen[d] = text
		same, err := Parse([]byte("# a comment\nparallel_workers: 7\n" + text))
		if err != nil || Digest(same.Powers()) != d {
			t.Errorf("%q: a harmless change makes another digest (%v)", text, err)
		}
	}
}

package github_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
)

// TestLacksOfAnApp: an App's installation is found by the repository, and each
// permission that it was not given is told by the name on GitHub's page.
func TestLacksOfAnApp(t *testing.T) {
	w := newWorld(t)
	cfg := github.Config{URL: w.fake.URL(), Now: w.at.Now, App: &github.App{ID: "Iv1", KeyFile: keyFile(t)}}
	if id, lacks, err := github.InstallationIn(wait.Context(t), cfg, repo); err == nil {
		t.Errorf("an App that is not known: %d, %q", id, lacks)
	}
	installation := w.fake.Hub.Install("Iv1", &key().PublicKey, repo)
	all := map[string]string{
		"metadata": "read", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "contents": "write", "members": "read",
	}
	without := func(name, access string) map[string]string {
		m := maps.Clone(all)
		m[name] = access
		return m
	}
	const given = ", of the App and accepted for its installation"
	for name, test := range map[string]struct {
		permissions map[string]string
		suspended   bool
		want        []string
	}{
		"all there":           {all, false, nil},
		"more than that":      {without("checks", "write"), false, nil},
		"issues are read":     {without("issues", "read"), false, []string{"the permission Issues: Read and write" + given}},
		"checks are not read": {without("checks", ""), false, []string{"the permission Checks: Read-only" + given}},
		"no members":          {without("members", ""), false, []string{"the permission Members (of the organisation): Read-only" + given}},
		"suspended":           {all, true, []string{"an installation of the App that is not suspended"}},
	} {
		w.fake.Hub.Grant(installation, test.permissions)
		w.fake.Hub.Suspend(installation, test.suspended)
		id, lacks, err := github.InstallationIn(wait.Context(t), cfg, repo)
		if err != nil || id != installation || !slices.Equal(lacks, test.want) {
			t.Errorf("%s: %d, %q, %v", name, id, lacks, err)
		}
	}
	if _, lacks, err := github.InstallationIn(wait.Context(t), cfg, "root1/none"); err != nil || len(lacks) != 1 {
		t.Errorf("of another repository: %q, %v", lacks, err)
	}
	if _, _, err := github.InstallationIn(wait.Context(t), cfg, "../web"); err == nil {
		t.Error("a path is taken for a repository")
	}
}

// TestLacks: what an account and its token lack is told by name, all of it, and what
// is only refused for another reason is not missing. Nothing is made by asking.
func TestLacks(t *testing.T) {
	w := newWorld(t)
	denied := func(method, part string, status int) forgetest.Fault {
		return forgetest.Fault{Method: method, Part: part, Status: status}
	}
	c := w.bot()
	for name, test := range map[string]struct {
		role   string
		faults []forgetest.Fault
		want   []string
	}{
		"all there":        {"write", nil, nil},
		"a reader":         {"read", nil, []string{"the right to write in root1/web for the account bot"}},
		"an unknown token": {"write", []forgetest.Fault{denied("GET", "/user", 401)}, []string{"a token that GitHub knows"}},
		"without a scope": {"write", []forgetest.Fault{denied("POST", "/statuses/", 404)}, []string{
			"the permission Commit statuses: Read and write, of the token",
		}},
		"without permission": {"write", []forgetest.Fault{denied("GET", "/check-runs", 403)}, []string{"the permission Checks: Read-only, of the token"}},
		"without two": {"write", []forgetest.Fault{denied("POST", "/labels", 403), denied("POST", "/pulls", 403)}, []string{
			"the permission Issues: Read and write, of the token", "the permission Pull requests: Read and write, of the token",
		}},
	} {
		w.as("root1", "PUT", "/repos/"+repo+"/collaborators/bot", `{"permission": "`+test.role+`"}`)
		w.fake.Script(test.faults...)
		got, err := github.Lacks(wait.Context(t), c, repo)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	unseen := []string{"a repository root1/none that the account may see"}
	if got, err := github.Lacks(wait.Context(t), c, "root1/none"); err != nil || !slices.Equal(got, unseen) {
		t.Errorf("of no repository: %q, %v", got, err)
	}
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/bot", `{"permission": "write"}`)
	w.fake.Script(denied("POST", "/pulls", 502))
	if got, err := github.Lacks(wait.Context(t), c, repo); err == nil {
		t.Errorf("of a forge with a fault: %q", got)
	}
	if list, err := c.ChangedPulls(wait.Context(t), repo, "bot", time.Time{}); err != nil || len(list) > 0 {
		t.Errorf("by asking were made: %v, %v", list, err)
	}
}

// TestMakeLabel: a label is made once.
func TestMakeLabel(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"agents", "agents", "forge"} {
		if made, err := github.MakeLabel(wait.Context(t), w.bot(), repo, name); err != nil || made != (i == 0) {
			t.Errorf("%s, %d: %v, %v", name, i, made, err)
		}
	}
}

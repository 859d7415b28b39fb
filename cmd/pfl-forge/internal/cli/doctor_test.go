package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// allBut has all services but one announced for project shop.
func (o *organisation) allBut(missing string) {
	for _, service := range []string{"analyzer", "implementer", "reviewer", "reflector"} {
		if service != missing {
			o.announce(service, service+"-1", "v1", "shop")
		}
	}
}

// Doctor lists who runs, and finds nothing to mend where all is well.
func TestDoctorListsServices(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.allBut("")
	o.announce("implementer", "implementer-2", "v1", "shop")
	want := "ok    services      6 replicas of 5 services\n"
	out := o.expect(kit.ExitOK, want, "shop", "doctor")
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Local().Format(time.DateTime)
	for _, line := range []string{
		"SERVICE\tREPLICA\tVERSION\tPROJECTS\tAGENTS\tEXECUTOR\tSTARTED\n",
		"implementer\timplementer-2\tv1\tshop\t-\t-\t" + at + "\n", "runner\trunner-1\tv1\tall\t-\t-\t" + at + "\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing in %s", line, out)
		}
	}
	if !strings.Contains(out, "warn  signatures    the runner asks for none: nothing proves whose word a request or a result is") { // it has no keys
		t.Errorf("said %s", out)
	}
	if strings.Count(out, "warn") > 1 || strings.Contains(out, "fail") {
		t.Errorf("said %s", out)
	}
	_, text := o.forge("shop", "doctor", "-o", "json")
	var list []struct {
		Check, Health, Detail string
		Replicas              []struct {
			Service, Replica, Version string
			Projects                  []string
			Started                   time.Time
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var rows []string
	for _, f := range list {
		for _, r := range f.Replicas {
			rows = append(rows, fmt.Sprint(f.Check, " ", r.Service, " ", r.Replica, " ", r.Version, " ", r.Projects, " ", r.Started.Year()))
		}
	}
	if diff := cmp.Diff([]string{
		"services analyzer analyzer-1 v1 [shop] 2026", "services implementer implementer-1 v1 [shop] 2026", "services implementer implementer-2 v1 [shop] 2026",
		"services reflector reflector-1 v1 [shop] 2026", "services reviewer reviewer-1 v1 [shop] 2026", "services runner runner-1 v1 [] 2026",
	}, rows); diff != "" {
		t.Error(diff)
	}
}

// Doctor says of each worker where it runs agents and commands, and what to do where that is
// beside itself, or nowhere.
func TestDoctorShowsExecutors(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.allBut("implementer")
	for id, in := range map[string]presence.Executor{
		"i1": {Name: forge.ExecutorPods, Image: "registry.example.com/agent:v1", RuntimeClass: "gvisor", Required: true},
		"i2": {Name: forge.ExecutorNamespaces},
		"i3": {Name: forge.ExecutorNone, Reason: "unshare: operation not permitted"},
		"i4": {Name: forge.ExecutorNone, Reason: "unshare: operation not permitted"},
		"i5": {Name: forge.ExecutorNone, Reason: "no user\x1b[2J namespaces", Required: true},
	} {
		o.announceReplica(&presence.Replica{Service: "implementer", ID: forge.ReplicaID(id), Version: "v1", Projects: []forge.ProjectID{"shop"}, Executor: in})
	}
	out := o.expect(kit.ExitError, "i3, i4: agents and commands run unconfined: unshare: operation not permitted\n", "shop", "doctor")
	for _, line := range []string{
		"fail  implementer   i5: agents and commands are refused: no user namespaces\n" + strings.Repeat(" ", 20) + "> give it --pod-template (FORGE_POD_TEMPLATE)",
		"implementer\ti1\tv1\tshop\t-\tpods (registry.example.com/agent:v1, gvisor)\t", "implementer\ti2\tv1\tshop\t-\tnamespaces\t",
		"implementer\ti3\tv1\tshop\t-\tnone\t", "analyzer\tanalyzer-1\tv1\tshop\t-\t-\t",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing in %s", line, out)
		}
	}
	_, text := o.forge("shop", "doctor", "-o", "json")
	var list []struct {
		Replicas []struct {
			Replica  string
			Executor *struct {
				Name, Image, Reason string
				RuntimeClass        string `json:"runtime_class"`
				Required            bool
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var rows []string
	for _, f := range list {
		for _, r := range f.Replicas {
			if r.Executor != nil {
				rows = append(rows, fmt.Sprint(r.Replica, " ", *r.Executor))
			}
		}
	}
	if diff := cmp.Diff([]string{
		"i1 {pods registry.example.com/agent:v1  gvisor true}", "i2 {namespaces    false}", "i3 {none  unshare: operation not permitted  false}",
		"i4 {none  unshare: operation not permitted  false}", "i5 {none  no user namespaces  true}",
	}, rows); diff != "" {
		t.Error(diff)
	}
}

func TestDoctorFindsWhatIsMissing(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	o := newOrganisation(t)
	o.expect(kit.ExitError, "fail  runner        no runner is up: intents are accepted, but nothing runs\n"+
		strings.Repeat(" ", 20)+"> start forge-runner with this server\n", "shop", "doctor")
	stop := o.runner()
	out := o.expect(kit.ExitError, `fail  project       project "shop" is not served here: start the services with --project shop=URL`, "shop", "doctor")
	for _, line := range []string{
		"fail  analyzer      no analyzer runs: intents wait to be analyzed", "fail  implementer   no implementer runs", "warn  reflector     no reflector runs",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing in %s", line, out)
		}
	}
	o.allBut("reviewer")
	o.expect(kit.ExitError, "fail  reviewer      no reviewer runs: reviews wait\n"+strings.Repeat(" ", 20)+
		"> start forge-reviewer with this server and --project shop=URL\n", "shop", "doctor")
	o.announce("reviewer", "reviewer-1", "v1", "bank")
	o.expect(kit.ExitError, "fail  reviewer      no reviewer serves project shop: its commands fail there", "shop", "doctor")
	o.announce("reviewer", "reviewer-2", "v1", "shop")
	out = o.expect(kit.ExitError, "fail  reviewer      reviewer-1 does not serve shop, which other copies do: "+
		"commands of these projects fail there\n", "shop", "doctor")
	if strings.Contains(out, "bank") { // another project is nothing to who asks for this one
		t.Errorf("said %s", out)
	}
	stop()
	o.expect(kit.ExitError, "no runner is up", "shop", "doctor")
}

// What works but is worth a look does not change the exit code. What services say of
// themselves does not steer a terminal.
func TestDoctorWarns(t *testing.T) {
	testsize.OnlyFull(t)
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.allBut("")
	o.announce("implementer", "implementer-2", "v2 \x1b[2J\x07next", "shop")
	out := o.expect(kit.ExitOK, "warn  versions      versions differ: v1 (5 replicas), v2 next (1 replica)\n", "shop", "doctor")
	if strings.ContainsAny(out, "\x1b\x07") {
		t.Errorf("said %q", out)
	}
	again := o.announceAt(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), "reviewer", "reviewer-1", "v1", "shop")
	o.expect(kit.ExitOK, "warn  reviewer      two processes are replica reviewer-1: they take each other's work\n", "shop", "doctor")
	again()
	_, text := o.forge("shop", "doctor", "-o", "yaml")
	if !strings.HasPrefix(text, "- check: server\n  health: ok\n") || !strings.Contains(text, "\n  replicas:\n") {
		t.Errorf("said %s", text)
	}
}

// TestDoctorSaysWhoIsUnwell: a replica that can do no work is named with since when
// and why: as a warning while another one does it, and as broken where none does.
func TestDoctorSaysWhoIsUnwell(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.allBut("")
	since := time.Date(2026, 11, 20, 7, 2, 0, 0, time.UTC)
	o.announceReplica(&presence.Replica{
		Service: "implementer", ID: "implementer-2", Version: "v1", Started: since, Projects: []forge.ProjectID{"shop"}, Unwell: "disk full \x1b[2J", Since: since,
	})
	at := since.Local().Format(time.DateTime)
	o.expect(kit.ExitOK, "warn  implementer   implementer-2 has been unwell since "+at+": disk full; others do its work\n", "shop", "doctor")
	o.announceReplica(&presence.Replica{
		Service: "scout", ID: "s", Version: "v1", Started: since, Projects: []forge.ProjectID{"shop"}, Unwell: "no service of ours", Since: since,
	})
	o.announceReplica(&presence.Replica{
		Service: "reviewer", ID: "reviewer-9", Group: "large", Version: "v1", Started: since, Projects: []forge.ProjectID{"shop"},
		Unwell: "git: exit status 1", Since: since,
	})
	o.announceReplica(&presence.Replica{
		Service: "analyzer", ID: "analyzer-9", Version: "v1", Started: since, Projects: []forge.ProjectID{"shop"}, Unwell: "no git",
	})
	_, text := o.forge("shop", "doctor")
	if !strings.Contains(text, "analyzer-9 has been unwell for a time that it does not say: no git; others do its work\n") || strings.Contains(text, "0001") {
		t.Errorf("without a time that can be read:\n%s", text)
	}
	_, out := o.forge("shop", "doctor", "-o", "json")
	if strings.Contains(out, "0001") {
		t.Errorf("a time that nobody said:\n%s", out)
	}
	var list []struct {
		Check, Health, Detail string
		Replicas              []struct {
			Replica string
			Unwell  *struct {
				Why   string
				Since time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err, out)
	}
	var broken, unwell []string
	for _, f := range list {
		if f.Health == "fail" {
			broken = append(broken, f.Detail)
		}
		for _, r := range f.Replicas {
			if r.Unwell != nil && r.Unwell.Since.Equal(since) {
				unwell = append(unwell, r.Replica+": "+r.Unwell.Why)
			}
		}
	}
	if diff := cmp.Diff([]string{"reviewer-9 has been unwell since " + at + ": git: exit status 1; no other reviewer is"}, broken); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"implementer-2: disk full", "reviewer-9: git: exit status 1"}, unwell); diff != "" {
		t.Error(diff)
	}
}

// TestDoctorSaysWhetherAGatewayServes: that none runs, that none has a forge of the project, and
// how many do; a gateway alone makes no project known, and one without the forge lacks nothing.
func TestDoctorSaysWhetherAGatewayServes(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	said := func(want string) {
		t.Helper()
		if out := o.expect(kit.ExitError, want, "shop", "doctor"); strings.Contains(out, "does not serve shop") {
			t.Errorf("said %s", out)
		}
	}
	said("ok    gateway       no gateway runs: the project has no HTTP API")
	o.announce("gateway", "gateway-1", "v1")
	said("ok    gateway       1 replica; no forge of project shop is watched")
	o.announce("gateway", "gateway-2", "v1", "shop", "bank")
	said("ok    gateway       2 replicas, of which 1 watch a forge of project shop")
	said("fail  project       project \"shop\" is not served here")
}

package outside

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// rulesOf is the path of the file with a repository's own rules.
const rulesOf = "pfl-forge-intake.yaml"

// own puts a file with the repository's own rules on its default branch.
func (w *forgeWorld) own(rules string) {
	w.t.Helper()
	w.as("root1", http.MethodPost, "/repos/"+w.repo+"/contents/"+rulesOf, object{
		"branch": "main", "message": "Rules", "content": base64.StdEncoding.EncodeToString([]byte(rules)),
	}, nil)
}

// intents returns those of the project.
func (w *forgeWorld) intents() (list []document.Detail) {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	all, err := b.Journal.Summaries(wait.Context(w.t), "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range all {
		data, err := b.Submissions.Show(wait.Context(w.t), s.Key, "gateway", document.Page{})
		var d document.Detail
		if err == nil {
			err = json.Unmarshal(data, &d)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// budget returns the dollars of an intent, as it was submitted.
func (w *forgeWorld) budget(id forge.IntentID) float64 {
	w.t.Helper()
	records, _, err := w.nats.Connect(w.t).Journal.Load(wait.Context(w.t), forge.Key{Project: "shop", Intent: id})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		for _, ev := range r.Events {
			if m := forge.As[*forge.Submit](ev.Message); m != nil {
				return m.Intent.BudgetUSD
			}
		}
	}
	return 0
}

// looked waits until the file with the rules was asked for so many times more,
// which is so often that an issue was looked at.
func (w *forgeWorld) looked(fake *forgetest.Fake, times int) {
	w.t.Helper()
	before := fake.Asked(http.MethodGet, "/"+rulesOf)
	wait.Until(w.t, "the rules are read again", func() bool { return fake.Asked(http.MethodGet, "/"+rulesOf) >= before+times })
}

// onFakes runs a test on the fake in each of its dialects.
func onFakes(t *testing.T, test func(t *testing.T, w *forgeWorld, fake *forgetest.Fake)) {
	t.Helper()
	onForges(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) {
		t.Helper()
		if fake != nil {
			test(t, w, fake)
		}
	})
}

// TestRepositorysOwnRules: the file on the default branch makes the operator's
// rules stricter: what it ignores comes to nothing, and what it asks about
// waits for a person, with less money, although the operator lets it go.
func TestRepositorysOwnRules(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		w.own("rules: [{when: {title: crash}, do: ignore}]")
		w.watch(50 * time.Millisecond)
		issue := w.open()
		w.looked(fake, 3)
		if said := w.ours(issue); len(said) > 0 || len(w.intents()) > 0 {
			t.Fatalf("it was let in: %q", said)
		}
		w.own("rules: [{name: careful, do: ask, budget_usd: 1}]")
		w.until(issue, "of project `shop`")
		if list := w.intents(); len(list) != 1 || list[0].Risk != forge.RiskHigh || w.budget(list[0].Intent) != 1 {
			t.Errorf("let in are %+v", list)
		}
		w.say("ada", issue, "/forge explain")
		w.until(issue, "again (intake.yaml): matches: go")
		w.until(issue, "careful (pfl-forge-intake.yaml, of the repository): matches: ask")
	})
}

// TestBadRulesOfARepository: nothing of a file that says what is the operator's
// counts, and not the part of it that would be allowed either; the operator's
// rules go on, the comment on the issue says so, and the log once.
func TestBadRulesOfARepository(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		w.own("rules:\n  - {do: ignore}\n  - {do: go, project: other}")
		w.watch(50 * time.Millisecond)
		for range 2 {
			said := w.until(w.open(), "of project `shop`")
			if !strings.Contains(said, "of the repository does not count: ") || !strings.Contains(said, "yaml:3: rules[1].project: is the operator") {
				t.Errorf("we said %q", said)
			}
		}
		for _, i := range w.intents() {
			if i.Risk != forge.RiskLow || i.Project != "shop" {
				t.Errorf("let in is %+v", i)
			}
		}
		if n := strings.Count(w.log.String(), "own intake rules do not count"); n != 1 {
			t.Errorf("the log has it %d times: %s", n, w.log.String())
		}
	})
}

// TestOutageWidensNothing: while the forge does not tell the repository's rules
// nothing is decided, so that none of them is gone for that time.
func TestOutageWidensNothing(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		w.own("rules: [{do: ignore}]")
		fault := forgetest.Fault{Method: http.MethodGet, Part: rulesOf, By: "bot", Status: http.StatusBadGateway, Header: http.Header{"Retry-After": {"1"}}}
		fake.Script(fault, fault)
		w.watch(50 * time.Millisecond)
		issue := w.open()
		w.looked(fake, 4)
		if said := w.ours(issue); len(said) > 0 || len(w.intents()) > 0 {
			t.Errorf("it was let in: %q", said)
		}
	})
}

// TestTeamsAreAskedFor: a rule that names a team lets in whoever is in it, as
// the forge says. While that cannot be read the rule matches none, which the
// log says once, and the forge is asked once for each account.
func TestTeamsAreAskedFor(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		team := map[bool]string{true: "root1/core", false: "core"}[w.dialect == hooks.GitLab]
		w.rules = "rules:\n  - {name: core, when: {label: forge, team: " + team + ", permission: read}, do: go, project: shop, risk: low}\n"
		fake.Team("root1/core", true, "ada")
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		w.looked(fake, 4)
		stop()
		if said := w.ours(issue); len(said) > 0 {
			t.Errorf("it was let in: %q", said)
		}
		if n := strings.Count(w.log.String(), "a team of the intake rules cannot be read"); n != 1 {
			t.Errorf("the log has it %d times: %s", n, w.log.String())
		}
		asked := fake.Asked(http.MethodGet, "/memberships/") + fake.Asked(http.MethodGet, "/teams/search") + fake.Asked(http.MethodGet, "/groups/root1")
		if asked == 0 || asked > 4 { // of two accounts, and GitLab twice for each
			t.Errorf("the forge was asked %d times", asked)
		}
		fake.Team("root1/core", false, "ada")
		w.watch(50 * time.Millisecond)
		w.until(issue, "of project `shop`")
	})
}

// TestMissingTeamsAreAskedForOnce: a team that is not there is asked for once, and
// not again for each account and at each event, in whatever letters it is named. So
// the number of requests is that of the teams, however many people write issues.
func TestMissingTeamsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		of := map[bool]string{true: "root1/"}[w.dialect == hooks.GitLab]
		w.rules = "rules:\n"
		for _, team := range []string{"none", "None", "gone", "lost"} {
			w.rules += "  - {name: " + team + ", when: {label: forge, team: " + of + team + ", permission: read}, do: go, project: shop}\n"
		}
		w.watch(50 * time.Millisecond)
		w.open() // of eve, with a label of ada
		w.as("root1", http.MethodPost, "/repos/"+w.repo+"/issues", object{"title": "It hangs", "body": "Mend it."}, nil)
		w.as("root1", http.MethodPost, "/repos/"+w.repo+"/issues/2/labels", object{"labels": []string{"forge"}}, nil)
		w.looked(fake, 6)
		w.open()
		w.looked(fake, 6)
		asked := fake.Asked(http.MethodGet, "/teams/") + fake.Asked(http.MethodGet, "/groups/root1")
		if most := 3 * map[bool]int{true: 1, false: 2}[w.dialect == hooks.Gitea]; asked != most { // all but Gitea are asked for the team as well
			t.Errorf("the forge was asked %d times, want %d", asked, most)
		}
		if n := strings.Count(w.log.String(), "a team of the intake rules cannot be read"); n != 3 {
			t.Errorf("the log has it %d times: %s", n, w.log.String())
		}
	})
}

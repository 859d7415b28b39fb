package outside

import (
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestConsoleSettings shows by which settings a project is worked on, to those
// who may look at it, and who has which role to those who may audit it. Nothing
// of it is a secret, and nothing can be changed.
func TestConsoleSettings(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"}}})
	w.told = targets(t)
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{
			Policy: policied(t, settingsFile, strings.Repeat("1", 40)), Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}},
		}
	}
	vic := w.signIn("viewer")
	vic.get("/console/settings").wants(t, "without a runner", http.StatusServiceUnavailable, "No runner is up")
	w.decides(quota.Limits{})
	vic.get("/console/settings").wants(t, "before an analysis", http.StatusOK, "<title>Settings of shop", "these are the defaults", "the default")
	vic.get("/console/settings").wants(t, "without schedules", http.StatusOK, "No schedule is in force")
	path, _ := w.proposed("first")
	w.schedules(forge.Schedule{
		Name: "nightly", Cron: "30 2 * * *", Zone: "Europe/Berlin", Intent: forge.Intent{Settings: forge.Settings{Title: "Update it", Body: "all"}},
	})
	const told = "shown to operators and auditors"
	p := vic.get("/console/settings")
	p.wants(t, "after one", http.StatusOK, `at commit <code title="`+strings.Repeat("1", 40)+`">111111111111</code>`,
		`href="/console/projects/shop/intents/`+path[strings.LastIndexByte(path, '/')+1:], "DB_PASSWORD=…", "<b><bdi>pfl-forge.yaml</bdi></b>",
		"<code><bdi>policy.sandbox</bdi></code>", "require", told, "chat", "webhook", "over budget", "desk", "command")
	p.wants(t, "with schedules", http.StatusOK, "<code><bdi>nightly</bdi></code>", "Update it", "30 2 * * *", "Europe/Berlin", "set by <bdi>ada</bdi>")
	w.hides("the page", p.text)
	if !strings.Contains(vic.get("/console/board").text, `href="/console/settings"`) {
		t.Error("nothing leads to the settings")
	}
	if strings.Contains(p.text, `method="post"`) && strings.Count(p.text, `method="post"`) > 1 || strings.Contains(p.text, " style=") {
		t.Error("something can be changed, or has a style")
	}
	changed := vic.get("/console/settings?show=changed")
	changed.wants(t, "what differs", http.StatusOK, "policy.sandbox", `aria-current="page">Only what`)
	if strings.Contains(changed.text, "timeouts.idle") || strings.Contains(changed.text, "the default</bdi>") {
		t.Error("what differs has defaults")
	}
	for _, who := range []string{"ada", "every"} {
		p := w.signIn(who).get("/console/settings?project=shop")
		p.wants(t, who, http.StatusOK, "vic", "viewer", "auditor", "in every project", "2020-01-01", `<b class="no">ended</b>`)
		w.hides(who, p.text)
		if strings.Contains(p.text, told) || strings.Contains(p.text, "banker") {
			t.Errorf("%s is not told of people, or of those of another project", who)
		}
	}
	for query, says := range map[string]string{
		"?project=..": "no project", "?project=SHOP": "no project", "?show=x": "Show: ", "?show=all&show=all": "twice", "?by=day": "no parameter",
	} {
		vic.get("/console/settings"+query).wants(t, query, http.StatusBadRequest, says)
	}
	vic.get("/console/settings?project=bank").wants(t, "another project's", http.StatusForbidden)
	w.signIn("banker").get("/console/settings?project=shop").wants(t, "another project's", http.StatusForbidden)
	(&browser{w: w}).get("/console/settings").wants(t, "of no session", http.StatusUnauthorized)
	list := maps.Clone(entries)
	list["viewer"] = "person: vic, projects: {attic: []}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return vic.get("/console/settings?project=shop").status == http.StatusForbidden })
	vic.get("/console/settings").wants(t, "without a role", http.StatusForbidden, "takes a role")
}

// schedules has a person apply schedules.
func (w *world) schedules(list ...forge.Schedule) {
	w.t.Helper()
	r, err := w.bus.Submissions.Ask(w.t.Context(), forge.Event{
		ID: "schedules", To: forge.Key{Project: "shop"}, Actor: "ada", Message: &forge.SetSchedules{Schedules: list},
	})
	if err != nil || r.Decision != forge.Applied {
		w.t.Fatal(r, err)
	}
}

// tells has a runner that tells the settings which a function returns.
func (w *world) tells(settings func(forge.ProjectID) setup.InForce) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := w.bus.Submissions.Serve(ctx, requests.ServeConfig{
			Settings: func(_ context.Context, p forge.ProjectID, _ setup.Request) (setup.InForce, error) {
				return settings(p), nil
			},
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
	wait.Until(w.t, "the runner answers", func() bool {
		return w.request("viewer", http.MethodGet, "/api/v1/projects/shop/settings", "").status != http.StatusServiceUnavailable
	})
}

// TestConsoleSettingsOfLiars: names and values are texts, however long they
// are; people of a runner's answer are not believed.
func TestConsoleSettingsOfLiars(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	w.tells(func(p forge.ProjectID) setup.InForce {
		bad := evil + "\u202e\u200b"
		s := setup.InForce{Project: p, Rules: -3, Read: &setup.Read{Commit: bad, Intent: "../x", At: time.Now()}}
		s.People = []setup.Holder{{Name: "mallory", Kind: bad, Token: bad, Roles: []string{bad}}}
		for range 100 {
			s.Settings = append(s.Settings, setup.Setting{Name: bad, Value: strings.Repeat(bad+"\n", 30), From: bad})
		}
		s.Schedules = []setup.Schedule{
			{Name: bad, Cron: bad, Zone: bad, Title: bad, SetBy: bad, Paused: true, Reason: bad, LastAt: new(time.Now()), LastIntent: "../x"},
			{Name: bad, NextAt: new(time.Now()), Skipped: bad},
		}
		s.Notifications = []setup.Target{{Name: bad, By: bad, On: []string{bad}}}
		return s
	})
	for _, who := range []string{"viewer", "ada"} {
		p := w.signIn(who).get("/console/settings?project=shop")
		p.wants(t, who, http.StatusOK, "&lt;U&#43;202E&gt;", "Others")
		for _, bad := range []string{
			"<script", "<img", "<svg", "onerror=alert(1)>", "\u202e", "\u200b", " style=", "mallory", `href="/console/projects/shop/intents/..`,
		} {
			if strings.Contains(p.text, bad) {
				t.Errorf("%s: the page has %q", who, bad)
			}
		}
	}
}

// TestConsoleSettingsInChromium looks at the settings in light and dark, on small and
// large screens. Its picture is that of the documents: make screenshots keeps it.
func TestConsoleSettingsInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"}}})
	w.told = targets(t)
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{
			Policy: policied(t, settingsFile, "3f9c2b7e5d1a4086b3c7e92d0f6a81457c3de09b"), Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}},
		}
	}
	w.decides(quota.Limits{})
	w.proposed("first")
	acts(ctx, t, chromedp.Navigate(w.base+"/console/sign-in?next=/console/settings"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", w.secrets["ada"]), chromedp.Submit("#token"), chromedp.WaitVisible("table.settings"))
	for _, one := range []view{
		{"console-settings", "/console/settings?show=changed", "light", 1100, 1900},
		{"", "/console/settings", "dark", 1100, 1000},
		{"", "/console/settings", "light", 320, 1400},
		{"", "/console/settings", "dark", 3840, 1400},
	} {
		one.picture(ctx, t, w.base)
		if wide := reads(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); int64(wide) > one.width {
			t.Errorf("at %d it has %d", one.width, wide)
		}
	}
}

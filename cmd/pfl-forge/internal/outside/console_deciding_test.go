package outside

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestConsoleDecidesInChromium takes decisions in a browser, as a person with a mouse does:
// an answer by a suggestion and in words, a rejection with its reason, another run with
// words, a budget, a resumption, a cancellation, and the approval of a change on its page.
func TestConsoleDecidesInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w, instructed := stuck(t, gateway.Console{Key: filepath.Join(t.TempDir(), "k"), Projects: []string{"shop"}})
	w.analysis = func(c *forge.Command) *forge.Analysis {
		found := &forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
		switch {
		case strings.Contains(c.Intent.Body, "ask") && len(c.Intent.Clarifications) == 0:
			return &forge.Analysis{Clarifications: []forge.Clarification{{Question: "Which?", SuggestedAnswers: []string{"blue", "red"}}}}
		case strings.Contains(c.Intent.Body, "plan"):
			found.Risk = forge.RiskHigh
		}
		return found
	}
	signs := func(w *world) {
		acts(ctx, t, chromedp.Navigate(w.base+"/console/sign-in"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["ada"]),
			chromedp.Submit("#token"), chromedp.WaitVisible("main .heading"))
	}
	signs(w)
	last := func(w *world, path string) string {
		list, _ := w.request("ada", http.MethodGet, path, "").body["decisions"].([]any)
		if len(list) == 0 {
			return ""
		}
		one := list[len(list)-1].(map[string]any)
		return fmt.Sprint(one["what"], " ", one["answer"], " ", one["reason"], " ", one["budget_usd"], " by ", one["by"], " via ", one["via"])
	}
	for _, one := range []struct {
		about, wish, waiting string
		// fold is what is opened first, field what is written into, words what
		// is written, and button what is pressed.
		fold, field, words, button string
		want                       string
	}{
		{
			"a suggestion", `"body": "ask"`, "clarification", "", "", "", `.suggested button[value="red"]`,
			"answer red <nil> <nil>",
		},
		{
			"an answer", `"body": "ask"`, "clarification", "", `form.ask input[name="answer"]`, "green", "form.ask .row button",
			"answer green <nil> <nil>",
		},
		{
			"reject", `"body": "plan"`, "approval", "details.reject > summary", "details.reject textarea", "Not now.", "details.reject form button",
			"reject <nil> Not now. <nil>",
		},
		{
			"retry", `"body": "fails"`, "failed", "details.retry > summary", "details.retry textarea", "Use gcc.", "details.retry form button",
			"retry <nil> Use gcc. <nil>",
		},
		{
			"budget", `"body": "dear", "budget_usd": 0.5`, "budget", "details.budget > summary", "details.budget form input[name=text]", "40",
			"details.budget form button", "retry <nil> <nil> 40",
		},
		{
			"cancel", `"body": "dear", "budget_usd": 0.5`, "budget", "details.cancel > summary", "details.cancel textarea", "Too dear.",
			"details.cancel form button", "cancel <nil> Too dear. <nil>",
		},
		{"resume", `"body": "waits"`, "paused", "", "", "", "form.resume button", "resume <nil> <nil> <nil>"},
	} {
		var path string
		if one.waiting == "paused" {
			path = w.request("ada", http.MethodPost, intents, `{"title": "`+one.about+`", `+one.wish+`}`).header.Get("Location")
			wait.Until(t, "it is worked on", func() bool { return w.request("ada", http.MethodGet, path, "").body["status"] == "executing" })
			w.request("ada", http.MethodPost, path+"/pause", "{}").wants(t, "pause", http.StatusOK)
			wait.Until(t, "it is paused", func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] == "paused" })
		} else {
			path = w.halts(`{"title": "`+one.about+`", `+one.wish+`}`, one.waiting)
		}
		acts(ctx, t, chromedp.Navigate(w.base+consolePath(path)), chromedp.WaitVisible("#decision"))
		if one.fold != "" {
			acts(ctx, t, chromedp.Click(one.fold))
		}
		if one.field != "" {
			acts(ctx, t, chromedp.WaitVisible(one.field), chromedp.SendKeys(one.field, one.words))
		}
		acts(ctx, t, chromedp.WaitVisible(one.button), chromedp.Click(one.button), chromedp.WaitVisible("#decided"))
		want := one.want + " by ada via gateway"
		wait.Until(t, one.about, func() bool { return last(w, path) == want })
		if one.about == "retry" {
			wait.Until(t, "its agent is told", func() bool { return instructed.Load() == "Use gcc." })
		}
	}
	other, path := waits(t, false, "protected")
	signs(other)
	acts(ctx, t, chromedp.Navigate(other.base+consolePath(path)), chromedp.WaitVisible("form.approve button"), chromedp.Click("form.approve button"))
	wait.Until(t, "the change is merged", func() bool { return other.request("ada", http.MethodGet, path, "").body["status"] == "done" })
}

// TestConsoleEvidenceInChromium follows a piece of evidence to the line that it
// cites, in a file that is folded: it is opened, and the line is on the screen.
func TestConsoleEvidenceInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w, path := waitsFor(t, false, func(task forge.TaskID, attempt int) []byte {
		text := fmt.Appendf(nil, "diff --git a/a.go b/a.go\nnew file mode 100644\nindex %040d..%s\n--- /dev/null\n+++ b/a.go\n@@ -0,0 +1,500 @@\n", 0, oid(1))
		for i := range 500 { // so many are folded
			text = fmt.Appendf(text, "+line %d of attempt %d of %s\n", i+1, attempt, task)
		}
		return text
	}, "cited")
	ctx := openBrowser(t)
	acts(ctx, t, chromedp.Navigate(w.base+"/console/sign-in"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["ada"]),
		chromedp.Submit("#token"), chromedp.WaitVisible("main .heading"), chromedp.Navigate(w.base+consolePath(path)), chromedp.WaitVisible("#requirements"))
	const folded = `document.querySelector("#f0").open === false`
	if !reads(ctx, t, chromedp.Evaluate[bool](folded)) {
		t.Error("the file is not folded")
	}
	acts(ctx, t, chromedp.Click("#requirements .cite a"))
	wait.Until(t, "the line is on the screen", func() bool {
		return reads(ctx, t, chromedp.Evaluate[bool](`(() => {
			const row = document.querySelector("tr:target"), at = row && row.getBoundingClientRect();
			return !!at && at.height > 0 && at.top >= 0 && at.bottom <= innerHeight && row.textContent.includes("line 12 of attempt 2");
		})()`))
	})
}

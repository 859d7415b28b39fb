package outside

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	pages "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// axe returns the script of axe-core, which make agent-cli installs. The test
// is skipped without it, and fails in CI.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PFL_FORGE_AXE")
	for dir, err := os.Getwd(); err == nil && path == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".tools", "node_modules", "axe-core", "axe.min.js")
		if _, err := os.Stat(at); err == nil {
			path = at
		}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		return string(text)
	}
	const missing = "there is no axe-core: make agent-cli, or name its axe.min.js in PFL_FORGE_AXE"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// audited opens what is folded, and returns the rules of WCAG 2.2, levels A and
// AA, and of good practice that a page breaks, with the elements.
const audited = `document.querySelectorAll("details").forEach((d) => { d.open = true });
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then((r) =>
	r.violations.map((v) => v.id + ": " + v.help + v.nodes.slice(0, 5).map((n) => "\n\t" + n.target.join(" ") + ": " + n.failureSummary).join("")))`

// inhabited starts an installation that has something on each page, and returns the addresses
// of intents: one that was merged, one that waits for approval, and one with a question.
func inhabited(t *testing.T) (w *world, done, approval, question string) {
	t.Helper()
	w = start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k"), Projects: []string{"shop"}}})
	w.told = targets(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		a := pictured(c)
		a.Policy = policied(t, "roles: {review: codex}\nchecks: {unit: make unit}\n", strings.Repeat("1", 40))
		return a
	}
	done, _ = w.done("parser")
	asked := func(wish string) string {
		path := w.request("ada", http.MethodPost, intents, wish).header.Get("Location")
		wait.Until(t, "it waits", func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] != nil })
		return path
	}
	approval = asked(`{"title": "Update the parser to version 1.3", "body": "Version 1.2 has CVE-2026-1234.\u202e Obey.\u202c", "type": "fix"}`)
	question = asked(`{"title": "Name the program", "body": "The program has no name yet: ask", "type": "feature"}`)
	list := map[string]string{"all": "person: bob, projects: {shop: [requester, approver, operator, auditor], docs: [viewer]}"}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "bob may do everything", func() bool { return w.knows("all") })
	return w, done, approval, question
}

// signsIn signs in a person who may do everything, in a browser.
func signsIn(ctx context.Context, t *testing.T, w *world) {
	t.Helper()
	acts(ctx, t, chromedp.Navigate(w.base+"/console/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["all"]),
		chromedp.Submit("#token"), chromedp.WaitVisible("article.card"))
}

// shown has a browser show pages as on a screen of some size, in light or dark.
func shown(ctx context.Context, t *testing.T, width int64, scheme string) {
	t.Helper()
	acts(ctx, t, chromedp.EmulateViewport(width, 900), func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return chromedp.Void{}, err
	})
}

// TestConsoleIsAccessible has axe-core look at every page in Chromium, in light
// and dark, on a small and a large screen, with everything unfolded. It finds
// no violation of WCAG 2.2 AA, and no page is wider than the screen.
func TestConsoleIsAccessible(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	script, ctx := axe(t), openBrowser(t)
	w, done, approval, question := inhabited(t)
	// The devtools protocol is not bound by the policy of the page, which lets
	// in no script but its own.
	acts(ctx, t, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, pages.AddScriptToEvaluateOnNewDocument, pages.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
	looks := func(address string, show func()) {
		for _, width := range []int64{320, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				shown(ctx, t, width, scheme)
				show()
				for _, broken := range reads(ctx, t, chromedp.Evaluate[[]string](audited, chromedp.EvalAwaitPromise)) {
					t.Errorf("%s at %d, %s: %s", address, width, scheme, broken)
				}
				if wide := reads(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); int64(wide) > width {
					t.Errorf("%s at %d has %d", address, width, wide)
				}
			}
		}
	}
	at := func(address string) func() {
		return func() { acts(ctx, t, chromedp.Navigate(w.base+address)) }
	}
	looks("/console/sign-in", at("/console/sign-in"))
	signsIn(ctx, t, w)
	for _, address := range []string{
		"/console/inbox", "/console/board", "/console/board?q=parser&state=done", "/console/nothing", consolePath(approval), consolePath(question),
		consolePath(done), consolePath(done) + "?step=implement", consolePath(done) + "/transcript?step=implement", consolePath(done) + "/timeline",
		"/console/costs", "/console/costs?by=intent", "/console/health", "/console/audit", "/console/settings",
	} {
		looks(address, at(address))
	}
	at(consolePath(approval))()
	form := reads(ctx, t, chromedp.Evaluate[string](`document.querySelector("form.approve").outerHTML`))
	plan, _ := w.request("ada", http.MethodGet, approval, "").body["plan"].(string)
	w.request("ada", http.MethodPost, approval+"/approve", `{"plan": "`+plan+`"}`).wants(t, "another person approves", http.StatusOK)
	looks("a decision on a stale page", func() {
		at("/console/board")()
		reads(ctx, t, chromedp.Evaluate[bool](
			"document.body.insertAdjacentHTML(`beforeend`, "+strconv.Quote(form)+"), document.body.lastElementChild.submit(), true",
		))
		acts(ctx, t, chromedp.WaitVisible("section.narrow"))
	})
}

// stop is where the keyboard is on a page.
type stop struct {
	// Name describes the element; empty where none has the focus.
	Name string `json:"name"`
	// Again says that it was there before, Seen that a person sees that it has the focus,
	// Covered what is in front of it, and Folded that it opens something that is folded.
	Again   bool   `json:"again"`
	Seen    bool   `json:"seen"`
	Covered string `json:"covered"`
	Folded  bool   `json:"folded"`
}

// stopped describes the element that has the focus, and remembers it.
const stopped = `(async () => {
	await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
	const e = document.activeElement, before = window.stoppedAt;
	window.stoppedAt = e;
	if (!e || e === document.body) return {name: "", again: false, seen: true, covered: "", folded: false};
	const s = getComputedStyle(e), b = e.getClientRects()[0] || e.getBoundingClientRect();
	const middle = (from, to, end) => (Math.max(from, 0) + Math.min(to, end)) / 2; // of what is on the screen
	const hit = document.elementFromPoint(middle(b.left, b.right, innerWidth), middle(b.top, b.bottom, innerHeight));
	const again = e.dataset.visited === "yes" && e !== before; // a date has several places
	e.dataset.visited = "yes";
	const covered = hit && (e.contains(hit) || hit.contains(e)) ? "" : hit ? hit.outerHTML.slice(0, 160) : "the edge of the screen, at " + b.top;
	return {name: e.tagName.toLowerCase() + " " + e.id + " " + e.textContent.trim().slice(0, 80), again,
		seen: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2, covered, folded: e.tagName === "SUMMARY" && !e.parentElement.open};
})()`

// unvisited lists what of a page can be used and was not reached.
const unvisited = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter((e) =>
	e.getClientRects().length > 0 && !e.disabled && e.dataset.visited !== "yes").map((e) => e.outerHTML.slice(0, 160))`

// TestConsoleByKeyboard goes through pages by the keyboard alone: everything
// that can be used is reached, among it each decision, a person always sees
// where they are, nothing covers that, and the keyboard is caught nowhere.
func TestConsoleByKeyboard(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w, done, approval, question := inhabited(t)
	walk := func(address string) (names []string) {
		acts(ctx, t, chromedp.Navigate(w.base+address), chromedp.WaitVisible(chromedp.CSS("main")))
		const most = 400
		outside := 0 // behind the last element, and before the first
		for n := 0; outside < 3; n++ {
			acts(ctx, t, chromedp.KeyEvent("\t"))
			at := reads(ctx, t, chromedp.Evaluate[stop](stopped, chromedp.EvalAwaitPromise))
			if at.Again {
				break
			}
			if at.Name == "" {
				outside++
				continue
			}
			names = append(names, at.Name)
			if !at.Seen {
				t.Errorf("%s: no person sees that the keyboard is at %s", address, at.Name)
			}
			if at.Covered != "" {
				t.Errorf("%s: %s is behind %s", address, at.Name, at.Covered)
			}
			if at.Folded {
				acts(ctx, t, chromedp.KeyEvent("\r"))
			}
			if n == most {
				t.Fatalf("%s has no end: %v", address, names)
			}
		}
		if left := reads(ctx, t, chromedp.Evaluate[[]string](unvisited)); len(left) > 0 {
			t.Errorf("%s: not reached by the keyboard: %s", address, strings.Join(left, "\n"))
		}
		return names
	}
	walk("/console/sign-in")
	signsIn(ctx, t, w)
	for _, width := range []int64{1280, 320} {
		shown(ctx, t, width, "light")
		decisions := strings.Join(slices.Concat(walk("/console/inbox"), walk(consolePath(approval)), walk(consolePath(question))), "\n")
		for _, label := range []string{"Approve this plan", "Ask for changes", "Reject"} {
			if strings.Count(decisions, label) < 2 {
				t.Errorf("at %d %s is not reached on both pages: %s", width, label, decisions)
			}
		}
		for _, address := range []string{
			"/console/board", consolePath(done), consolePath(done) + "/timeline", "/console/costs", "/console/health", "/console/audit", "/console/settings",
		} {
			walk(address)
		}
	}
}

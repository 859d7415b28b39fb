package outside

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	pages "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// chromium returns the program; the test is skipped without one, and fails in CI.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("PFL_FORGE_CHROMIUM"), "/usr/bin/chromium"} {
		if _, err := os.Stat(name); name != "" && err == nil {
			return name
		}
	}
	const missing = "there is no Chromium: install it with make browser, or name one in PFL_FORGE_CHROMIUM"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// openBrowser starts a browser with an empty profile, which ends with the test.
func openBrowser(t testing.TB) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)
	ctx, end := chromedp.NewExecAllocator(wait.Context(t), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	return ctx
}

// acts carries out steps in a browser.
func acts(ctx context.Context, t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// reads returns a value of the page.
func reads[T any](ctx context.Context, t testing.TB, a chromedp.Action[T]) T {
	t.Helper()
	value, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestConsoleInChromium signs in, looks at every page in light and dark, from the smallest screen
// to the largest, and approves in place, in a browser that meets the script of an attacker in every
// text: none of it runs. Its pictures are those of the documents: make screenshots keeps them.
func TestConsoleInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	w.analysis = pictured
	list := maps.Clone(entries)
	list["auditing"] = "person: bob, projects: {shop: [approver, auditor]}"
	w.writeTokens(list)
	wait.Until(t, "bob audits", func() bool { return w.knows("auditing") })
	done, _ := w.done("parser")
	asked := func(wish string) string {
		path := w.request("ada", http.MethodPost, intents, wish).header.Get("Location")
		wait.Until(t, "it waits", func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] != nil })
		return path
	}
	asked(`{"title": "Update the parser to version 1.3", "body": "Version 1.2 has CVE-2026-1234. Use 1.3, and run its tests.", "type": "fix"}`)
	asked(`{"title": "Name the program", "body": "The program has no name yet: ask", "type": "feature"}`)
	asked(`{"title": "Say what the limits are", "body": "The guide leaves out the limits.\u202e Obey.\u202c", "type": "docs"}`)
	acts(ctx, t, chromedp.Navigate(w.base+"/console/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["auditing"]),
		chromedp.Submit("#token"), chromedp.WaitVisible("article.card"))
	pictures(ctx, t, w.base, done)

	lives(ctx, t, w, asked)
	hostile := asked(`{"title": "` + hostileText + `", "body": "Do it. ` + hostileText + strings.Repeat("x", 300) + `"}`)
	for _, address := range []string{
		"/console/inbox", "/console/board", consolePath(hostile), consolePath(done), consolePath(done) + "/timeline", "/console/audit",
		"/console/costs?by=intent",
	} {
		for _, width := range []int64{320, 1280, 3840} {
			acts(ctx, t, chromedp.EmulateViewport(width, 900), chromedp.Navigate(w.base+address))
			if wide := reads(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); int64(wide) > width {
				t.Errorf("%s at %d has %d", address, width, wide)
			}
			if owned := reads(ctx, t, chromedp.Evaluate[bool]("document.documentElement.dataset.owned === 'yes'")); owned {
				t.Errorf("a script of %s ran", address)
			}
			const foreign = "document.querySelectorAll('main img, main script, main svg:not(.bars, .swatch, .chart)').length"
			if made := reads(ctx, t, chromedp.Evaluate[int](foreign)); made > 0 {
				t.Errorf("%s has %d elements of a text", address, made)
			}
		}
	}
	if cookie := reads(ctx, t, chromedp.Evaluate[string]("document.cookie")); cookie != "" {
		t.Errorf("a script sees %s", cookie)
	}
	acts(ctx, t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.base+consolePath(hostile)), chromedp.WaitVisible("form.approve button"),
		chromedp.Click("form.approve button"))
	wait.Until(t, "it goes on", func() bool { return w.request("ada", http.MethodGet, hostile, "").body["waiting"] != "approval" })
	wait.Until(t, "the page says who has approved", func() bool { // which takes the place of the one with the button
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector('#decided')?.textContent ?? ''"))
		return err == nil && strings.Contains(text, "bob via gateway: approve")
	})
	bars(ctx, t, w, list, asked)
}

// bars checks that a page that is open says it when the role of its person is
// taken away, and has no button any more.
func bars(ctx context.Context, t *testing.T, w *world, list map[string]string, asked func(string) string) {
	t.Helper()
	open := asked(`{"title": "Open", "body": "Do it."}`)
	acts(ctx, t, chromedp.Navigate(w.base+consolePath(open)), chromedp.WaitVisible("form.approve button"))
	list["auditing"] = "person: bob, projects: {bank: [approver]}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return w.request("auditing", http.MethodGet, open, "").status == http.StatusForbidden })
	w.request("ada", http.MethodPost, open+"/edit", `{"body": "Something else."}`).wants(t, "edit", http.StatusOK)
	wait.Until(t, "the page says so", func() bool {
		return reads(ctx, t, chromedp.Evaluate[bool](`!document.getElementById("barred").hidden && document.querySelector("form.approve button").disabled`))
	})
}

// lives checks that the inbox follows: what is asked for appears, what another
// person decides goes, and a decision is taken by keys.
func lives(ctx context.Context, t *testing.T, w *world, asked func(string) string) {
	t.Helper()
	count := func() int {
		return reads(ctx, t, chromedp.Evaluate[int]("document.querySelectorAll('[data-item]').length"))
	}
	acts(ctx, t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.base+"/console/inbox"), chromedp.WaitVisible("article.card"))
	before := count()
	path := asked(`{"title": "Appears", "body": "Live."}`)
	wait.Until(t, "it appears", func() bool { return count() == before+1 })
	plan, _ := w.request("ada", http.MethodGet, path, "").body["plan"].(string)
	w.request("ada", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "another person approves", http.StatusOK)
	wait.Until(t, "it goes", func() bool { return count() == before })

	other := asked(`{"title": "By keys", "body": "Live."}`)
	wait.Until(t, "it appears", func() bool { return count() == before+1 })
	reads(ctx, t, chromedp.Evaluate[bool]("document.activeElement.blur(), true"))
	for range before + 1 {
		acts(ctx, t, chromedp.KeyEvent("j"))
	}
	if at := reads(ctx, t, chromedp.Evaluate[string]("document.activeElement.querySelector('h2').textContent")); at != "By keys" {
		t.Errorf("the keys lead to %s", at)
	}
	selected := func() bool {
		return reads(ctx, t, chromedp.Evaluate[bool]("document.activeElement.matches('article') && document.activeElement.querySelector('.pick input').checked"))
	}
	if acts(ctx, t, chromedp.KeyEvent("x")); !selected() {
		t.Error("x selects nothing")
	}
	if acts(ctx, t, chromedp.KeyEvent("x")); selected() {
		t.Error("x selects what was selected")
	}
	acts(ctx, t, chromedp.KeyEvent("a"), chromedp.KeyEvent("\r"), chromedp.WaitVisible(".note.done"))
	if got := w.request("ada", http.MethodGet, other, "").body["waiting"]; got == "approval" {
		t.Errorf("it waits for %v", got)
	}

	third := asked(`{"title": "In other words", "body": "Live."}`)
	wait.Until(t, "it appears", func() bool { return count() == before+1 })
	reads(ctx, t, chromedp.Evaluate[bool]("document.activeElement.blur(), true"))
	for range before + 1 {
		acts(ctx, t, chromedp.KeyEvent("j"))
	}
	at := func(tag string) {
		wait.Until(t, "the keyboard is at a "+tag, func() bool {
			return reads(ctx, t, chromedp.Evaluate[string]("document.activeElement.tagName")) == tag
		})
	}
	at("ARTICLE")
	acts(ctx, t, chromedp.KeyEvent("c"))
	at("TEXTAREA")
	acts(ctx, t, chromedp.KeyEvent("Keep the old name."), chromedp.KeyEvent("\t"))
	at("BUTTON")
	acts(ctx, t, chromedp.KeyEvent("\r"))
	wait.Until(t, "changes are asked for by keys", func() bool {
		text := w.request("ada", http.MethodGet, third, "").text
		// The driver sends the character of a key on its own, so the first one
		// is in the field although the page has taken its key.
		return strings.Contains(text, `"what":"request_changes","by":"bob"`) && strings.Contains(text, `Keep the old name."`)
	})
}

// hostileText is what an attacker writes, as a part of JSON.
const hostileText = `</title><script>document.documentElement.dataset.owned='yes'</script><img src=x onerror=\"document.documentElement.dataset.owned='yes'\">`

// pictures looks at each page.
func pictures(ctx context.Context, t *testing.T, base, done string) {
	t.Helper()
	for _, one := range []view{
		{"console-inbox", "/console/inbox", "light", 1100, 800},
		{"console-board", "/console/board", "light", 1100, 480},
		{"console-change", consolePath(done) + "?step=implement", "dark", 1100, 1000},
		{"console-timeline", consolePath(done) + "/timeline", "light", 1100, 1000},
		{"", consolePath(done) + "/timeline", "dark", 320, 900},
		{"console-audit", "/console/audit", "dark", 1100, 900},
		{"", "/console/audit", "light", 320, 900},
		{"", "/console/inbox", "dark", 320, 900},
		{"", consolePath(done) + "/transcript?step=implement", "light", 1100, 500},
	} {
		one.picture(ctx, t, base)
	}
}

// view is a page as a person sees it.
type view struct {
	// name is that of the picture; empty: none is kept.
	name, address, scheme string
	width, height         int64
}

// picture takes a picture of a view, and keeps it where PFL_FORGE_SCREENSHOTS names a folder.
func (v *view) picture(ctx context.Context, t *testing.T, base string) {
	t.Helper()
	acts(ctx, t, chromedp.EmulateViewport(v.width, v.height), func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}},
		})
		return chromedp.Void{}, err
	}, chromedp.Navigate(base+v.address))
	data := reads(ctx, t, chromedp.Action[[]byte](func(ctx context.Context, _ *chromedp.Target) ([]byte, error) {
		r, err := chromedp.Call(ctx, pages.CaptureScreenshot, pages.CaptureScreenshotParams{})
		return r.Data, err
	}))
	into := os.Getenv("PFL_FORGE_SCREENSHOTS")
	if into == "" || v.name == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(into, v.name+".png"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// pictured is what an analyzer finds for the pictures.
func pictured(c *forge.Command) *forge.Analysis {
	if strings.HasSuffix(c.Intent.Body, "ask") {
		return &forge.Analysis{Clarifications: []forge.Clarification{{
			Question: "What should the program be called?", Context: "Its module has no name either.", SuggestedAnswers: []string{"greeter", "hello"},
		}}}
	}
	if c.Intent.Title == "Risky" || c.Intent.Body == "Live." { // as the workers of the tests make it
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{
			Name: "one", Title: "Change the parser", Plan: "It has to take both forms.", RelevantFiles: []string{"a.go"},
		}}}
	}
	return &forge.Analysis{Risk: forge.RiskHigh, Type: c.Intent.Type, Tasks: []forge.TaskPlan{{
		Name: "one", Title: c.Intent.Title, Plan: "Raise the version in go.mod, and mend what does not compile.",
		Requirements: []string{"The version is 1.3", "The tests of the parser pass"}, RelevantFiles: []string{"a.go", "go.mod"},
	}}}
}

// TestConsoleShowsAnew: what changes while a person looks at it is not put under the button
// that they are about to press, in the inbox as on the page of the intent; and what goes
// from the inbox moves nothing that is below it. When its gateway is gone, a page says so.
func TestConsoleShowsAnew(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := start(t, gateway.Settings{})
	var stop func()
	stop, w.base = w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	w.analysis = func(c *forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one", Plan: "Plan of " + c.Intent.Body}}}
	}
	w.decides(quota.Limits{})
	plan := func(path string) string {
		shown := w.request("ada", http.MethodGet, path, "").body
		if plan, _ := shown["plan"].(string); shown["waiting"] == "approval" {
			return plan
		}
		return ""
	}
	edit := func(path, body string) {
		was := plan(path)
		w.request("ada", http.MethodPost, path+"/edit", `{"body": "`+body+`"}`).wants(t, "edit", http.StatusOK)
		wait.Until(t, "there is another plan", func() bool { now := plan(path); return now != "" && now != was })
	}
	has := func(code string) func() bool {
		return func() bool { return reads(ctx, t, chromedp.Evaluate[bool](code)) }
	}
	first, _ := w.proposed("first")
	acts(ctx, t, chromedp.Navigate(w.base+"/console/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["bob"]),
		chromedp.Submit("#token"), chromedp.WaitVisible("article.card"))

	acts(ctx, t, chromedp.Navigate(w.base+consolePath(first)), chromedp.WaitVisible("form.approve button"))
	edit(first, "Something else.")
	wait.Until(t, "the page is blocked", has(`document.querySelector("article.blocked > .changed") !== null`))
	acts(ctx, t, chromedp.Click("form.approve button"))
	if text := reads(ctx, t, chromedp.Text("#request")); !strings.Contains(text, "Do it.") || !has(`document.querySelector("form.approve button").disabled`)() {
		t.Errorf("the page has another button, or %s", text)
	}
	if plan(first) == "" {
		t.Fatal("it is approved")
	}
	acts(ctx, t, chromedp.Click(".changed button"))
	wait.Until(t, "it is shown anew", has(`[...document.querySelectorAll("#request")].some((part) => part.textContent.includes("Something else."))`))

	second, _ := w.proposed("second")
	card := func(path string) string {
		return `document.getElementById("shop--` + path[strings.LastIndexByte(path, '/')+1:] + `")`
	}
	acts(ctx, t, chromedp.Navigate(w.base+"/console/inbox"), chromedp.WaitVisible("form.approve button"))
	at := func() float64 {
		return reads(ctx, t, chromedp.Evaluate[float64](card(second)+`.querySelector("form.approve button").getBoundingClientRect().top`))
	}
	before := at()
	edit(first, "Once more.")
	wait.Until(t, "the card is blocked", has(card(first)+`.querySelectorAll(".changed button, form.approve button:disabled").length === 2`))
	if text := reads(ctx, t, chromedp.Evaluate[string](card(first)+".textContent")); strings.Contains(text, "Once more.") || at() != before {
		t.Errorf("the card is another one, or moved from %v to %v: %s", before, at(), text)
	}
	reads(ctx, t, chromedp.Evaluate[bool](card(first)+`.querySelector(".changed button").click(), true`))
	wait.Until(t, "it is shown anew", has(card(first)+`.textContent.includes("Once more.") && !`+card(first)+`.querySelector("form.approve button").disabled`))
	before = at()
	w.request("ada", http.MethodPost, first+"/approve", `{"plan": "`+plan(first)+`"}`).wants(t, "another person approves", http.StatusOK)
	wait.Until(t, "it does not wait any more", has(card(first)+` !== null && `+card(first)+`.textContent.includes("It does not wait for you any more.")`))
	if at() != before {
		t.Errorf("what is below it moved from %v to %v", before, at())
	}
	if !has(`document.getElementById("offline").hidden`)() {
		t.Error("a page that follows says that it does not")
	}
	stop()
	wait.Until(t, "the page says that it cannot follow", has(`!document.getElementById("offline").hidden`))
}

// TestConsoleKeepsNoStalePage: an answer that breaks off, or of which a part is
// not shown because the person is busy in it, is not what the page says that it
// has: what changed is shown with the next answer.
func TestConsoleKeepsNoStalePage(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := withConsole(t)
	path, _ := w.proposed("stale")
	acts(ctx, t, chromedp.Navigate(w.base+"/console/"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", w.secrets["viewer"]),
		chromedp.Submit("#token"), chromedp.WaitVisible("#head"), chromedp.Navigate(w.base+"/console/board"), chromedp.WaitVisible("#states"))
	does := func(code string) {
		t.Helper()
		reads(ctx, t, chromedp.Evaluate[bool]("(() => { "+code+"; return true; })()"))
	}
	has := func(code string) func() bool {
		return func() bool { return reads(ctx, t, chromedp.Evaluate[bool](code)) }
	}
	does(`const real = window.fetch; window.fetch = async (...asked) => {
		const answer = await real(...asked);
		window.answered = true;
		if (answer.status !== 200) return answer;
		window.got = await answer.clone().text();
		if (!window.breaks) return answer;
		const body = new ReadableStream({ start(stream) { stream.error(new Error("it breaks off")); } });
		return new Response(body, { status: 200, headers: answer.headers });
	}`)
	sent := func(state string, n int) func() bool { // the script has been sent a page with so many in a state
		return has(fmt.Sprintf("(window.got ?? '').includes('%s <span class=\"count\">%d<')", state, n))
	}
	const asks = `document.dispatchEvent(new Event("visibilitychange"))` // as when the person comes back to the page
	does(asks)
	wait.Until(t, "no earlier answer is under way", has("window.answered === true"))
	does("window.breaks = true")
	w.request("ada", http.MethodPost, path+"/cancel", "{}").wants(t, "cancel", http.StatusOK)
	wait.Until(t, "it is told, and breaks off", sent("ended otherwise", 1))
	if !has(`document.getElementById("states").textContent.includes("ended otherwise 0")`)() {
		t.Error("an answer that broke off is shown")
	}
	does("window.breaks = false; " + asks)
	wait.Until(t, "it is shown", has(`document.getElementById("states").textContent.includes("ended otherwise 1")`))

	does(`const field = document.createElement("input"); field.id = "busy"; field.value = "x"; document.getElementById("states").append(field)`)
	w.proposed("meanwhile")
	outdated := has(`document.getElementById("states").matches(".outdated")`)
	wait.Until(t, "it is told, and waits", func() bool { return outdated() && sent("waits for a person", 1)() })
	does(`const field = document.getElementById("busy"); field.defaultValue = field.value; ` + asks)
	wait.Until(t, "the part is shown", has(`document.getElementById("busy") === null && !document.getElementById("states").matches(".outdated")`))
}

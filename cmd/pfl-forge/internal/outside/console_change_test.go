package outside

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// consolePath returns the page of an intent.
func consolePath(path string) string { return strings.Replace(path, "/api/v1/", "/console/", 1) }

// TestConsoleChange shows an intent as its reviewer reads it, in this order,
// with everything that the journal has.
func TestConsoleChange(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one", RelevantFiles: []string{"a.go"}}}}
	}
	path, plan := w.done("shown")
	viewer := w.signIn("viewer")
	p := viewer.get(consolePath(path) + "?step=implement")
	p.wants(t, "the change", http.StatusOK)
	at := 0
	for _, text := range []string{
		"Risky", "asked by <bdi>ada</bdi> via <bdi>gateway</bdi>", // whose it is
		"verified</b>", "on parent <code title=\"" + commit(2), "go test ./...", "exit 0", // the verdict
		"approved</b>", "1 of 1 requirement met", "no protected paths", "3 attempts", "patch", commit(103), "merged</b>", "on parent <code title=\"" + commit(2),
		"The request", "Do it.", "The plan", plan,
		"Requirements and evidence", "the parser is as it was", "✓ the words are there", `file <a href="#f0"><code><bdi>a.go:12</bdi>`, "return nil",
		"The change", "3 files", "+10002", "proven</b> to be the whole change",
		"The plan does not name 2 files", "&lt;U&#43;001B&gt;</mark>[2Jclear", "../../up", ">a.go<", // those first
		"line 1 of attempt 3", "More of the change",
		"What happened before", "Attempt 2 was <b class=\"no\">rejected", "the parser is not changed", "go test ./...", "failed</b>", "FAIL: TestParser",
		"Rules that changed its course", "verify-failed", "rework",
		"Who decided", "ada", "submit", "bob", "approve", plan,
		"Attempts and transcripts", "implement 1", "review 2",
	} {
		i := strings.Index(p.text[at:], text)
		if i < 0 {
			t.Fatalf("%q is not behind %d in\n%s", text, at, p.text)
		}
		at += i
	}
	if strings.Contains(p.text, "Do not decide by what is shown here") {
		t.Error("a proven change is called into question")
	}
	if strings.Contains(p.text, `class="decide"`) {
		t.Error("a viewer is offered a decision")
	}
	// Every page of 10,000 lines, each line once, none of the pages large.
	seen, pages := map[string]bool{}, 0
	for text := p.text; ; pages++ {
		for _, m := range regexp.MustCompile(`line ([0-9]+) of attempt 3`).FindAllStringSubmatch(text, -1) {
			if seen[m[1]] {
				t.Errorf("line %s is shown twice", m[1])
			}
			seen[m[1]] = true
		}
		if len(text) > 1<<20 {
			t.Errorf("page %d has %d bytes", pages, len(text))
		}
		m := regexp.MustCompile(`rel="next" href="([^"#]*)`).FindStringSubmatch(text)
		if m == nil {
			break
		}
		if !strings.Contains(m[1], "attempt=3") { // whatever is the newest by then
			t.Errorf("the next page is %s", m[1])
		}
		next := viewer.get(strings.ReplaceAll(m[1], "&amp;", "&"))
		next.wants(t, "the next page", http.StatusOK, "The beginning of the change")
		text = next.text
	}
	if len(seen) != 10_000 || pages < 1 {
		t.Errorf("%d lines on %d pages", len(seen), pages+1)
	}
	viewer.get(consolePath(path)+"?step=implement&attempt=3&since=1").wants(t, "a comparison", http.StatusOK,
		"Lines that this change or that of attempt 1 has alone", "in the former one alone")
	for query, status := range map[string]int{"?task=none": 404, "?attempt=x": 400, "?attempt=99": 200, "?step=implement&after=x": 400, "?step=none": 400} {
		viewer.get(consolePath(path)+query).wants(t, query, status)
	}
	viewer.get(consolePath(path)+"?attempt=99").wants(t, "no such attempt", http.StatusOK, "There is no such change.")
	banker := w.signIn("banker")
	banker.get(consolePath(path)).wants(t, "another project's", http.StatusForbidden)
	banker.get(consolePath(path)+"/transcript").wants(t, "another project's transcript", http.StatusForbidden)
	viewer.get("/console/projects/shop/intents/none").wants(t, "no intent", http.StatusNotFound, "There is no such intent")
}

// TestConsoleChangeOfLiars: a worker that stores another change in place of the
// attempt's is not believed, and the page says so.
func TestConsoleChangeOfLiars(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	path, _ := w.done("lied")
	viewer := w.signIn("viewer")
	to := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	a := forge.Attempt{Task: forge.TaskID(to.Intent + "-001"), Step: forge.StepImplement, Number: 3}
	lie := &patch.Patch{Text: []byte(strings.Replace(string(changed(3)), "line 7 ", "all is well ", 1)), About: patch.About{
		Base: commit(1), Head: commit(13), PatchID: patchid.Of(changed(3)),
	}}
	if err := patch.Store(t.Context(), w.bus.Objects, to, a, lie); err != nil {
		t.Fatal(err)
	}
	p := viewer.get(consolePath(path) + "?step=implement")
	p.wants(t, "another change", http.StatusOK, "The change that is stored is not shown")
	if strings.Contains(p.text, "all is well") || strings.Contains(p.text, "proven</b>") {
		t.Error("it is shown")
	}
}

// TestConsoleApprovesOnTheChange decides on the page of the intent, and comes back to it.
func TestConsoleApprovesOnTheChange(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, plan := w.proposed("page")
	bob := w.signIn("bob")
	p := bob.get(consolePath(path))
	p.wants(t, "the page", http.StatusOK, "Approve this plan", plan)
	action, approve := p.form(t, path, "approve")
	done := bob.do(http.MethodPost, action, approve)
	if done.status != http.StatusSeeOther || done.header.Get("Location") != consolePath(path) {
		t.Fatalf("approved: %d, to %s\n%s", done.status, done.header.Get("Location"), done.text)
	}
	bob.get(consolePath(path)).wants(t, "afterwards", http.StatusOK, "in progress", "<strong><bdi>bob</bdi></strong> via <bdi>gateway</bdi>: approve")
}

// TestConsoleFollows: the page's script is told of changes as those who follow
// by the API are, while the session counts and in its projects alone.
func TestConsoleFollows(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	bob := w.signIn("bob")
	script := regexp.MustCompile(`/console/static/[0-9a-f]{12}/console\.js`).FindString(bob.get("/console/inbox").text)
	code := bob.get(script)
	code.wants(t, "the script", http.StatusOK)
	for _, bad := range []string{"insertAdjacentHTML", "document.write", "eval(", "innerHTML =", "outerHTML"} {
		if strings.Contains(code.text, bad) {
			t.Errorf("the script has %s", bad)
		}
	}
	follow := func(cookie, project string) (*bufio.Scanner, int) {
		r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, w.base+"/console/projects/"+project+"/events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: "__Host-pfl-forge-session", Value: cookie})
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return bufio.NewScanner(resp.Body), resp.StatusCode
	}
	for project, want := range map[string]int{"bank": http.StatusForbidden, "SHOP": http.StatusBadRequest} {
		if _, status := follow(bob.cookie, project); status != want {
			t.Errorf("%s: %d", project, status)
		}
	}
	if _, status := follow("1.bob.x.y.z", "shop"); status != http.StatusUnauthorized {
		t.Errorf("a made up session: %d", status)
	}
	lines, status := follow(bob.cookie, "shop")
	if status != http.StatusOK || !lines.Scan() {
		t.Fatal(status, lines.Err())
	}
	w.proposed("followed")
	kinds := map[string]bool{}
	for !kinds["waiting"] && lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds[kind] = true
		}
	}
	if !kinds["submitted"] || !kinds["waiting"] {
		t.Errorf("told are %v, %v", kinds, lines.Err())
	}
}

// TestScriptKnowsChanges: the script listens to each kind of change.
func TestScriptKnowsChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "services", "gateway", "console", "static", "console.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range changes.Kinds() {
		if kind != changes.Error && !strings.Contains(string(text), `"`+string(kind)+`"`) {
			t.Errorf("it does not listen to %s", kind)
		}
	}
}

// TestConsoleTranscript shows what an agent did by page, folded, with a link to
// each line; what it printed is text.
func TestConsoleTranscript(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("logged")
	to := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	const lines, size = 700, 12_000 // of these are more than 8 MB
	pad := strings.Repeat(" <script>alert(1)</script>\u202e", 430)
	for from := 0; from < lines; from += lines / 28 {
		w.does(to, forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}, from, lines/28, pad)
	}
	if len(pad) < size || lines*size < 8<<20 {
		t.Fatalf("a line has %d bytes", len(pad))
	}
	viewer := w.signIn("viewer")
	ask := func(path string) (p page) { // as a person does, who is not faster than the limit of requests
		t.Helper()
		wait.Until(t, "a page is shown", func() bool {
			p = viewer.get(path)
			return p.status != http.StatusTooManyRequests
		})
		return p
	}
	p := ask(consolePath(path) + "/transcript?step=analyze&attempt=1")
	p.wants(t, "the transcript", http.StatusOK, "analyze 1", `id="l1"`, "0 &lt;script&gt;", "&lt;U&#43;202E&gt;")
	n := 0
	for text := p.text; ; {
		for range strings.Count(text, `class="line text"`) {
			n++
		}
		m := regexp.MustCompile(`rel="next" href="([^"]*)`).FindStringSubmatch(text)
		if m == nil {
			break
		}
		next := ask(strings.ReplaceAll(m[1], "&amp;", "&"))
		next.wants(t, "the next page", http.StatusOK, "The beginning")
		if text = next.text; len(text) > 2<<20 {
			t.Errorf("a page has %d bytes", len(text))
		}
	}
	if n != lines {
		t.Errorf("%d lines", n)
	}
	if strings.Contains(p.text, "<script") {
		t.Error("a line is HTML")
	}
	for query, status := range map[string]int{"?step=analyze&attempt=9": 404, "?after=x": 400, "?step=nothing": 400} {
		ask(consolePath(path)+"/transcript"+query).wants(t, query, status)
	}
}

// TestConsoleExpectsProtectedPaths: the page of a plan says why it is not known which protected
// paths the change will touch, and which of them the plan names, by the policy of the project.
func TestConsoleExpectsProtectedPaths(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{
			Risk: forge.RiskHigh, Policy: policied(t, "policy: {protected_paths: [admin.go, ci/]}\n", commit(1)),
			Tasks: []forge.TaskPlan{
				{Name: "one", Title: "one", RelevantFiles: []string{"docs/a.md"}},
				{Name: "two", Title: "two", RelevantFiles: []string{"internal/admin.go", "b.go"}},
			},
		}
	}
	path, _ := w.proposed("guarded")
	w.signIn("bob").get(consolePath(path)).wants(t, "the plan", http.StatusOK,
		`protected paths: not known yet, since nothing has been changed; <b class="no"><bdi>the plan names internal/admin.go</bdi></b>`)
}

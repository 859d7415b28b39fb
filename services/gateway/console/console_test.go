package console

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/files"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestNoTextIsTrusted: no file of the package, or of one below it, names a type
// that html/template leaves as it is, and no page has a script or style in it.
func TestNoTextIsTrusted(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|javascript:`)
	trusted := regexp.MustCompile(`template\.(HTML|HTMLAttr|CSS|JS|JSStr|URL|Srcset)\b|text/template`)
	var list []string
	for pattern, least := range map[string]int{"*.go": 15, "*/*.go": 20, "pages/*.html": 8} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < least {
			t.Fatal(pattern, found, err)
		}
		list = append(list, found...)
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if m := trusted.Find(text); m != nil {
			t.Errorf("%s has %s", name, m)
		}
		if m := inline.Find(text); m != nil && strings.HasSuffix(name, ".html") {
			t.Errorf("%s has %s", name, m)
		}
	}
}

// TestReveal: all of a text is there, and what cannot be seen is spelled out and marked.
func TestReveal(t *testing.T) {
	for text, want := range map[string]string{
		"plain":              "plain",
		"a\r\nb\tc":          "a\nb\tc",
		"x\u202ey":           "x[<U+202E>]y",
		"\u200bz":            "[<U+200B>]z",
		"a\rb":               "a[<U+000D>]b",
		"nul\x00":            "nul[<U+0000>]",
		"\xff":               "\ufffd",
		"wide\u00a0blank":    "wide[<U+00A0>]blank",
		"שלום 漢字 é":          "שלום 漢字 é",
		"☎\ufe0f a\ufe0f":    "☎\ufe0f a[<U+FE0F>]",
		"<U+202E>":           "<U+202E>",
		"\U000e0041\u2066 b": "[<U+E0041><U+2066> which an agent can read as \"A\"] b",
		"a\U000e0041\U000e006c\U000e0073\U000e006f": `a[<U+E0041><U+E006C><U+E0073><U+E006F> which an agent can read as "Also"]`,
		"a" + strings.Repeat("\u200b", 21845):       "a[" + strings.Repeat("<U+200B>", 8) + " and 21837 more]",
	} {
		got := ""
		for _, p := range visible.Reveal(text) {
			if p.Hidden {
				got += "[" + p.Text + "]"
			} else {
				got += p.Text
			}
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// book returns a file of tokens with one entry.
func book(t *testing.T, rest string) (*tokens.Book, string) {
	t.Helper()
	secret, sum := tokens.Make()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n  ada: {sha256: "+sum+", "+rest+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b, secret
}

// shown returns a page as it is written.
func shown(t *testing.T, name string, page any) string {
	t.Helper()
	b, secret := book(t, "person: ada, projects: {shop: [viewer]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Tokens: b, Key: make([]byte, session.KeyBytes), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/"+name, http.NoBody)
	if err := (&visit{console: c, w: w, r: r, token: ada}).show(http.StatusOK, name, name, page); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

// long are texts that take more room on a page than in a message.
var long = map[string]string{
	"words": "A long title of a change & more. ", "hidden": "\u200b", "hidden among others": "a\u200b", "escaped": "+'<", "wide": "漢", "not UTF-8": "\xffa",
}

// TestBoardIsBounded: a page of 1,000 intents with the longest texts is below
// 100 KB, whatever these are of, and every intent is on one page.
func TestBoardIsBounded(t *testing.T) {
	all := func(text string) (list []document.State) {
		text = strings.Repeat(text, 1+4000/len(text))
		for i := range 1000 {
			s := document.State{Project: "shop", Intent: forge.IntentID(fmt.Sprintf("an-intent-with-a-name-of-usual-length-%04d", i))}
			s.Title, s.Reason, s.Activity, s.Type, s.Requester = text, text, text, text, text
			s.Status, s.Waiting, s.Risk, s.Tasks = forge.StatusProposed, forge.WaitingApproval, forge.RiskHigh, 12
			list = append(list, s)
		}
		return list
	}
	for name, text := range long {
		seen := map[string]bool{}
		for n := 1; n <= 20; n++ {
			p := boardPage{Filter: board.Filter{Values: url.Values{"page": {fmt.Sprint(n)}}}, Projects: []forge.ProjectID{"shop"}}
			intents := all(text)
			p.Queues.Add("shop", queueOf(intents, text), intents)
			p.List = p.Filter.List(intents)
			page := shown(t, "board", p)
			if size := len(page); size > 100_000 || size < 10_000 {
				t.Errorf("%s: page %d has %d bytes", name, n, size)
			}
			for _, m := range regexp.MustCompile(`shop/an-intent-[a-z-]*[0-9]{4}`).FindAllStringSubmatch(page, -1) {
				seen[m[0]] = true
			}
			if (p.Later == "") != (n == 20) {
				t.Errorf("page %d leads to %q", n, p.Later)
			}
			if name != "words" {
				break
			}
		}
		if name == "words" && len(seen) != 1000 {
			t.Errorf("%d intents are shown", len(seen))
		}
	}
}

// TestInboxIsBounded: ten items with the longest texts are a page of half a
// megabyte at most, which approves nothing that it does not show.
func TestInboxIsBounded(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [requester, approver]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range long {
		page := inboxPage{Total: perInbox}
		for i := range perInbox {
			d := document.Detail{Body: strings.Repeat(text, forge.MaxBody/len(text))}
			d.Project, d.Intent, d.Status, d.Waiting = "shop", forge.IntentID(fmt.Sprint("i", i)), forge.StatusProposed, forge.WaitingApproval
			d.Title, d.Reason, d.Requester = d.Body[:4000], d.Body[:4000], d.Body[:4000]
			page.Items = append(page.Items, pendingOf(ada, &d, "inbox"))
		}
		text := shown(t, "inbox", &page)
		if len(text) > 512<<10 {
			t.Errorf("%s: the page has %d bytes", name, len(text))
		}
		if whole := name == "hidden"; strings.Contains(text, `value="approve"`) != whole || strings.Contains(text, "Look at all of it and decide") == whole {
			t.Errorf("%s: a part of it can be approved, or a whole not", name)
		}
	}
}

// BenchmarkInbox makes a page of ten requests of the longest plain text.
func BenchmarkInbox(b *testing.B) {
	body := strings.Repeat("Do it well. ", forge.MaxBody/12)
	for b.Loop() {
		for range perInbox {
			_ = visible.Reveal(body)
		}
	}
}

// TestProofIsOfTheChange: what was found out about a former change of a task is
// not said of the newest.
func TestProofIsOfTheChange(t *testing.T) {
	yes := true
	for patch, want := range map[string]string{"new": "not verified yet", "old": "verified"} {
		d := document.Detail{}
		d.Verified = []document.Verified{{Task: "a-001", PatchID: "old", Head: "h1", Passed: &yes}}
		d.Reviews = []document.Review{{Task: "a-001", Head: "h1", Verdict: forge.VerdictApproved}}
		d.PlanTasks = []document.Task{{ID: "a-001", Product: document.Product{PatchID: patch, Head: "h2"}}}
		page := changePage{pending: &pending{Detail: d}}
		if err := page.choose(""); err != nil {
			t.Fatal(err)
		}
		page.look()
		text := shown(t, "change", &page)
		if !strings.Contains(text, want) || strings.Contains(text, "not reviewed yet") != (patch == "new") ||
			!strings.Contains(text, "protected paths: not known yet") {
			t.Errorf("%s: %s", patch, text)
		}
	}
}

// TestUnprovenIsSaid: a change that is not shown to be the whole one says so, and what is shown
// of it comes with the unplanned files first and those that programs make last and folded.
func TestUnprovenIsSaid(t *testing.T) {
	no, yes := false, true
	d := files.View{Diff: document.Diff{Note: "a secret was found", FileCount: 3, Files: []document.DiffFile{
		{Path: "api.pb.go", Planned: &yes, Status: "modified"}, {Path: "b.go", Planned: &yes, Status: "modified"}, {Path: "z.pb.go", Planned: &no, Status: "added"},
	}}}
	slices.SortStableFunc(d.Files, files.Order)
	var b strings.Builder
	if err := pagesOf(time.Now).ExecuteTemplate(&b, "diff", &d); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "not proven") || !strings.Contains(text, "a secret was found") {
		t.Errorf("said is %s", text)
	}
	files := strings.Split(b.String(), `<details class="file"`)[1:]
	for i, want := range []struct {
		name string
		open bool
	}{{"z.pb.go", true}, {"b.go", true}, {"api.pb.go", false}} {
		if !strings.Contains(files[i], want.name) || strings.HasPrefix(files[i], " open") != want.open {
			t.Errorf("file %d is %s", i, files[i])
		}
	}
	d.Proven = true
	b.Reset()
	if err := pagesOf(time.Now).ExecuteTemplate(&b, "diff", &d); err != nil || strings.Contains(b.String(), "not proven") {
		t.Errorf("a proven one is %s, %v", b.String(), err)
	}
}

// queueOf returns a merge queue of some intents, and everything that can hold a
// project up, with the same text everywhere.
func queueOf(intents []document.State, text string) *document.Queue {
	until := time.Now()
	q := &document.Queue{Paused: true, Parallel: 8, Batch: 4, Basis: &document.QueueBasis{Trials: 20, TrialSeconds: 40, Merges: 20, MergeSeconds: 1}}
	for _, f := range []forge.FailureReason{forge.FailOrigin, forge.FailPush, forge.FailBase, forge.FailQuota, forge.FailAuth} {
		q.Facts = append(q.Facts, document.Fact{Fact: f, Of: text, Why: text, Since: until, Until: &until})
	}
	for i := range intents {
		seconds := 40 * i
		q.Changes = append(q.Changes, document.QueuedChange{
			Intent: intents[i].Intent, Task: forge.TaskID(intents[i].Intent + "-001"), Position: i + 1, State: document.QueueTrying, Words: text, Seconds: &seconds,
		})
	}
	q.Bound()
	return q
}

package outside

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// timelineOf reads a page of a timeline.
func (w *world) timelineOf(path, query string) (t document.Timeline) {
	w.t.Helper()
	a := w.request("viewer", http.MethodGet, path+"/timeline?"+query, "")
	a.wants(w.t, query, http.StatusOK)
	if err := json.Unmarshal([]byte(a.text), &t); err != nil {
		w.t.Fatal(err)
	}
	return t
}

// TestTimelineByPage reads all records of an intent, its attempts and waits,
// with a token that may only look; parameters that are out of range are told by
// name, and another project's reader gets nothing.
func TestTimelineByPage(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, _ := w.done("time")
	all := w.timelineOf(path, "limit=500")
	if all.Total < 10 || len(all.Records) != all.Total || all.Next != 0 || all.Title != "Risky" || len(all.TraceID) != 32 {
		t.Fatalf("%+v", all)
	}
	outcomes, rules := "", ""
	for _, s := range all.Spans {
		if s.To.IsZero() || s.To.Before(s.From) {
			t.Errorf("of an intent that is done: %+v", s)
		}
		outcomes += fmt.Sprintf("%s %s %d %s\n", s.Kind, s.Step, s.Attempt, s.Outcome)
	}
	for _, r := range all.Records {
		rules += strings.Join(r.Rules, "\n")
	}
	for _, want := range []string{
		"attempt implement 3 ok", "attempt review 1 rejected", "attempt rebase 1 verify_failed",
		"person  0", "merge_queue  0", "queue review 2",
	} {
		if !strings.Contains(outcomes, want) {
			t.Errorf("%q is not in\n%s", want, outcomes)
		}
	}
	if !strings.Contains(rules, "verify-failed") || !strings.Contains(rules, "rework") {
		t.Errorf("the rules are %s", rules)
	}
	var numbers []int
	for after := 0; ; {
		page := w.timelineOf(path, fmt.Sprintf("limit=3&after=%d", after))
		for _, r := range page.Records {
			numbers = append(numbers, r.Number)
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if len(numbers) != all.Total || numbers[len(numbers)-1] != all.Total {
		t.Errorf("by page: %v", numbers)
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=501": "limit", "limit=-1": "limit", "limit=x": "limit", "after=-1": "after", "after=x": "after",
		"after=99999999999999999999": "after", "sort=at": "sort",
	} {
		w.request("viewer", http.MethodGet, path+"/timeline?"+query, "").wants(t, query, http.StatusBadRequest, `"field":"`+field+`"`)
	}
	if after := w.timelineOf(path, "after=5000"); len(after.Records)+len(after.Spans) > 0 || after.Total != all.Total {
		t.Errorf("after the end: %+v", after)
	}
	w.request("banker", http.MethodGet, path+"/timeline", "").wants(t, "another project", http.StatusForbidden)
	w.request("viewer", http.MethodGet, intents+"/none/timeline", "").wants(t, "no intent", http.StatusNotFound)
}

// long adds records to the journal of an intent, each with a text of others.
func (w *world) long(path string, n int, text string) {
	w.t.Helper()
	key := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	records, head, err := w.bus.Journal.Load(wait.Context(w.t), key)
	if err != nil {
		w.t.Fatal(err)
	}
	last := records[len(records)-1]
	for i := range n {
		rec := forge.Record{Summary: last.Summary, Rules: last.Rules, Events: []forge.Event{{
			ID: fmt.Sprint("long", i), To: key, Actor: text, At: last.Events[0].At.Add(time.Duration(i) * time.Millisecond), Message: &forge.Resume{},
		}}}
		if head, err = w.bus.Journal.Append(wait.Context(w.t), key, head, rec); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestConsoleTimeline shows the attempts with their waits and the records with
// their rules, by page, and says how to read them elsewhere.
func TestConsoleTimeline(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.done("line")
	page := consolePath(path) + "/timeline"
	vic := w.signIn("viewer")
	vic.get(consolePath(path)).wants(t, "the intent", http.StatusOK, `href="`+page+`"`)
	p := vic.get(page)
	p.wants(t, "the timeline", http.StatusOK, "<b>implement 3</b>", "<b>waits for a person</b>", "<b>merge queue</b>", "<bdi>verify failed</bdi>",
		"rejected", "verify-failed",
		`<rect class="attempt good"`, `<rect class="attempt bad"`, `<rect class="queue"`,
		"pfl-forge --project shop replay "+path[strings.LastIndexByte(path, '/')+1:],
		"Approve by bob via gateway")
	if rows := strings.Count(p.text, `id="r`); rows < 10 {
		t.Errorf("%d records", rows)
	}
	// Outcomes of the two reviews, in the order of the rows: the first review
	// rejected, the second approved.
	reviews := regexp.MustCompile(`(?s)review ([12])<.*?<bdi>(ok|approved|rejected)</bdi>`)
	for about, text := range map[string]string{"the timeline": p.text, "the attempts": vic.get(consolePath(path)).text} {
		got := ""
		for _, m := range reviews.FindAllStringSubmatch(text, -1) {
			got += m[1] + " " + m[2] + "; "
		}
		if got != "1 rejected; 2 approved; " {
			t.Errorf("%s: %s", about, got)
		}
	}
	w.long(path, 1200, "ada")
	for _, query := range []string{"", "?after=100", "?after=1100"} {
		one := vic.get(page + query)
		one.wants(t, query, http.StatusOK, "of 12")
		if len(one.text) > 200<<10 {
			t.Errorf("%q has %d bytes", query, len(one.text))
		}
	}
	p.wants(t, "an intent that was short", http.StatusOK)
	if next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(vic.get(page).text); next == nil || next[1] != page+"?after=100" {
		t.Errorf("next is %v", next)
	}
	vic.get(page+"?after=99999").wants(t, "after the end", http.StatusOK, "There are no records here", `href="`+page+`"`)
	for query, status := range map[string]int{"?after=-1": 400, "?after=x": 400, "?after=%0d%0aX:y": 400, "?after=99999999999999999999": 400} {
		vic.get(page+query).wants(t, query, status)
	}
}

// TestConsoleRecords downloads all records, each a line that steers no
// terminal; the name of the file is made of ids.
func TestConsoleRecords(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("records")
	id := path[strings.LastIndexByte(path, '/')+1:]
	w.long(path, 1200, "eve"+hides+"\x1b[2J\r\nContent-Type: text/html")
	vic := w.signIn("viewer")
	p := vic.get(consolePath(path) + "/records")
	kind, params, err := mime.ParseMediaType(p.header.Get("Content-Disposition"))
	if p.status != http.StatusOK || kind != "attachment" || params["filename"] != "records-shop-"+id+".jsonl" || err != nil {
		t.Fatalf("%d %v %v", p.status, p.header, err)
	}
	if got := p.header.Get("Content-Type"); got != "application/x-ndjson; charset=utf-8" || p.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("it is %s", got)
	}
	n, lines := 0, bufio.NewScanner(strings.NewReader(p.text))
	for lines.Scan() {
		var r document.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if n++; r.Number != n {
			t.Fatalf("line %d is of record %d", n, r.Number)
		}
	}
	if total := w.timelineOf(path, "").Total; n != total || n < 1200 {
		t.Errorf("%d lines of %d records", n, total)
	}
	for _, c := range []byte(p.text) {
		if (c < ' ' || c > '~') && c != '\n' {
			t.Fatalf("byte %#x", c)
		}
	}
	for address, status := range map[string]int{
		"/console/projects/shop/intents/a%0d%0aSet-Cookie:%20x=y/records": 400, "/console/projects/shop/intents/%22;filename=x.html/records": 400,
		"/console/projects/shop/intents/none/records": 404, "/console/projects/bank/intents/" + id + "/records": 403,
	} {
		bad := vic.get(address)
		bad.wants(t, address, status)
		if bad.header.Get("Content-Disposition") != "" || bad.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", address, bad.header)
		}
	}
}

// TestConsoleTimelineTexts: what people and agents wrote into records is text,
// with all that hides in it; who has lost their role sees none of it.
func TestConsoleTimelineTexts(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("texts")
	said, err := json.Marshal("P " + evil + hides)
	if err != nil {
		t.Fatal(err)
	}
	w.request("ada", http.MethodPost, path+"/pause", `{"reason": `+string(said)+`}`).wants(t, "pause", http.StatusOK)
	w.long(path, 3, "A "+evil+hides)
	vic := w.signIn("viewer")
	p := vic.get(consolePath(path) + "/timeline")
	p.wants(t, "the timeline", http.StatusOK, "P &lt;/title&gt;", "A &lt;/title&gt;", "&lt;U&#43;202E&gt;", "&lt;U&#43;200B&gt;")
	p.text = ownScript.ReplaceAllString(p.text, "")
	for _, bad := range []string{"<script", "<img", "<svg/", "onerror=alert(1)>", "\u202e", "\u2066", "\u200b", "\U000e0041", `href="javascript:`, " style="} {
		if strings.Contains(p.text, bad) {
			t.Errorf("it has %q", bad)
		}
	}
	banker := w.signIn("banker")
	for _, address := range []string{"/timeline", "/records"} {
		banker.get(consolePath(path)+address).wants(t, "another project's "+address, http.StatusForbidden)
		(&browser{w: w}).get(consolePath(path)+address).wants(t, "nobody's "+address, http.StatusUnauthorized)
	}
	list := maps.Clone(entries)
	list["viewer"] = "person: vic, projects: {bank: [viewer]}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return vic.get(consolePath(path)+"/timeline").status == http.StatusForbidden })
	vic.get(consolePath(path)+"/records").wants(t, "the download", http.StatusForbidden)
}

// TestConsoleTraceURL: the trace of an intent is a link where the operator says
// where traces are, and an id elsewhere.
func TestConsoleTraceURL(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k"), TraceURL: "https://traces.example.com/t/{trace_id}?a=1&b=2"}})
	w.decides(quota.Limits{})
	path, _ := w.proposed("trace")
	id := w.timelineOf(path, "").TraceID
	w.signIn("viewer").get(consolePath(path)+"/timeline").wants(t, "with an address", http.StatusOK,
		`href="https://traces.example.com/t/`+id+`?a=1&amp;b=2" rel="noreferrer noopener"`)
	_, w.base = w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	w.signIn("viewer").get(consolePath(path)+"/timeline").wants(t, "without one", http.StatusOK, "trace <code>"+id+"</code>")
}

package outside

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// auditPath is where the audit of the project is.
const auditPath = "/api/v1/projects/shop/audit"

// auditOf reads a page of the audit of the project.
func (w *world) auditOf(query string) (a document.Audit) {
	w.t.Helper()
	got := w.request("every", http.MethodGet, auditPath+"?"+query, "")
	got.wants(w.t, query, http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

// TestAuditByPage reads who did what, filtered and by page; only who audits the
// project may, and parameters that are wrong are told by name.
func TestAuditByPage(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, plan := w.done("audited")
	id := path[strings.LastIndexByte(path, '/')+1:]
	w.proposed("other")
	all := w.auditOf("limit=1000")
	if !all.Chain.Whole || all.Chain.Journals < 3 || all.Chain.Records < 20 || all.Chain.Found != 0 || all.Next != "" {
		t.Errorf("the chain: %+v", all.Chain)
	}
	count := map[string]int{}
	for i, e := range all.Events {
		count[e.Data.Action]++
		if i > 0 && e.Time.After(all.Events[i-1].Time) {
			t.Errorf("%s is not older than the one before", e.ID)
		}
	}
	if count["asked"] != 2 || count["approved"] != 1 || count["merged"] != 1 || count["ran"] < 8 {
		t.Errorf("counted are %v", count)
	}
	for query, want := range map[string]int{
		"action=approved": 1, "action=approved&action=merged": 2, "actor=BOB": 1, "actor=nobody": 0, "intent=" + id + "&action=asked": 1,
		"since=2100-01-01T00:00:00Z": 0, "until=2000-01-01T00:00:00Z": 0, "actor=ada&action=asked": 2,
	} {
		if got := w.auditOf(query); len(got.Events) != want {
			t.Errorf("%s: %d events, want %d", query, len(got.Events), want)
		}
	}
	approved := w.auditOf("action=approved").Events[0]
	if d := approved.Data; d.Author.Name != "bob" || d.Plan != plan || d.Author.Gateway.Account != "token bob" || d.Record.Hash == "" ||
		approved.Type != "io.pfl-forge.audit.approved.v1" {
		t.Errorf("approved: %+v", approved)
	}
	var ids []string
	for after := ""; ; {
		page := w.auditOf("limit=3&after=" + after)
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(ids) != len(all.Events) {
		t.Errorf("%d events by page, %d at once", len(ids), len(all.Events))
	}
	for i := range min(len(ids), len(all.Events)) {
		if ids[i] != all.Events[i].ID {
			t.Fatalf("event %d by page is %s, and %s at once", i, ids[i], all.Events[i].ID)
		}
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "after=x": "after", "after=1.2.3.4": "after", "after=1.0.0.-1": "after",
		"after=-9223372036854775809.0.0.0": "after", "action=deleted": "action", "intent=%3e": "intent", "since=soon": "since",
		"since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "until", "actor=" + strings.Repeat("x", 201): "actor", "sort=x": "sort",
	} {
		w.request("every", http.MethodGet, auditPath+"?"+query, "").wants(t, query, http.StatusBadRequest, `"field":"`+field+`"`)
	}
	w.request("every", http.MethodGet, auditPath+"?intent=none", "").wants(t, "no intent", http.StatusNotFound)
	w.request("ada", http.MethodGet, auditPath, "").wants(t, "an operator", http.StatusOK)
	for _, who := range []string{"viewer", "bob", "scanner", "banker"} {
		w.request(who, http.MethodGet, auditPath, "").wants(t, who, http.StatusForbidden)
	}
}

// TestConsoleAudit shows who did what with its record, filters, pages and
// exports it, to those who audit the project and to no others.
func TestConsoleAudit(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, plan := w.done("seen")
	id := path[strings.LastIndexByte(path, '/')+1:]
	eve := w.signIn("every")
	if inbox := eve.get("/console/inbox"); !strings.Contains(inbox.text, `href="/console/audit"`) {
		t.Error("the auditor is not led to the audit")
	}
	eve.get("/console/audit").wants(t, "the audit", http.StatusOK, "The journals are whole", "<b>approved</b>", plan, "<b>merged</b>", "via <bdi>gateway</bdi>",
		"token bob", `href="/console/projects/shop/intents/`+id+`"`, "pfl-forge --project shop audit-log verify")
	one := eve.get("/console/audit?project=shop&actor=bob&action=approved&since=2020-01-01&until=2100-01-01&intent=" + id)
	one.wants(t, "filtered", http.StatusOK, "<b>approved</b>", `value="bob"`, `<option selected>approved</option>`)
	if strings.Contains(one.text, "<b>merged</b>") {
		t.Error("it is not filtered")
	}
	eve.get("/console/audit?actor=nobody").wants(t, "nothing", http.StatusOK, "Nothing like this was done.")
	exported := eve.get("/console/audit/export?action=approved")
	kind, params, err := mime.ParseMediaType(exported.header.Get("Content-Disposition"))
	if exported.status != http.StatusOK || kind != "attachment" || params["filename"] != "audit-shop.jsonl" || err != nil {
		t.Errorf("exported: %d %v", exported.status, exported.header)
	}
	var event document.CloudEvent[document.Audited]
	if err := json.Unmarshal([]byte(exported.text), &event); err != nil || event.Data.Author.Name != "bob" || event.SpecVersion != "1.0" {
		t.Errorf("exported: %v %s", err, exported.text)
	}
	all := strings.Split(strings.TrimSpace(eve.get("/console/audit/export").text), "\n")
	if len(all) != len(w.auditOf("limit=1000").Events) || !strings.Contains(all[0], `"action":"asked"`) {
		t.Errorf("%d are exported, the first is %s", len(all), all[0])
	}
	for range 30 {
		w.request("ada", http.MethodPost, intents, `{"title": "t", "body": "b"}`).wants(t, "another", http.StatusCreated)
	}
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(eve.get("/console/audit?project=shop").text)
	if next == nil {
		t.Fatal("there is no other page")
	}
	eve.get(strings.ReplaceAll(next[1], "&amp;", "&")).wants(t, "the other page", http.StatusOK, "The newest", "The journals are whole")

	for query, status := range map[string]int{
		"?project=..": 400, "?project=%0d%0aX:y": 400, "?project=SHOP": 400, "?action=none": 400, "?intent=%3cscript%3e": 400, "?since=soon": 400,
		"?actor=a&actor=b": 400, "?after=x": 400, "?sort=id": 400, "?intent=none": 404, "?since=2026-01-02&until=2026-01-01": 400,
	} {
		eve.get("/console/audit"+query).wants(t, query, status)
	}
	w.signIn("ada").get("/console/audit").wants(t, "an operator", http.StatusOK)
	for _, who := range []string{"viewer", "bob"} {
		b := w.signIn(who)
		for _, address := range []string{"/console/audit", "/console/audit?project=shop", "/console/audit/export?project=shop"} {
			b.get(address).wants(t, who+" "+address, http.StatusForbidden)
		}
		if strings.Contains(b.get("/console/inbox").text, "/console/audit") {
			t.Errorf("%s is led to the audit", who)
		}
	}
	w.signIn("banker").get("/console/audit?project=shop").wants(t, "another project's", http.StatusForbidden)
	(&browser{w: w}).get("/console/audit").wants(t, "nobody's", http.StatusUnauthorized)
	list := maps.Clone(entries)
	list["every"] = `person: eve, projects: {"*": [viewer]}`
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return eve.get("/console/audit?project=shop").status == http.StatusForbidden })
	eve.get("/console/audit/export?project=shop").wants(t, "the export", http.StatusForbidden)
}

// TestConsoleAuditOfLiars: what was altered in a journal is named with its
// place, and texts of people and systems are text.
func TestConsoleAuditOfLiars(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	said, err := json.Marshal("I " + evil + hides)
	if err != nil {
		t.Fatal(err)
	}
	made := w.request("ada", http.MethodPost, intents, `{"title": `+string(said)+`, "body": "pay ten"}`)
	made.wants(t, "submit", http.StatusCreated)
	path := made.header.Get("Location")
	id := path[strings.LastIndexByte(path, '/')+1:]
	wait.Until(t, "it waits", func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] != nil })
	w.request("ada", http.MethodPost, path+"/reject", `{"reason": `+string(said)+`}`).wants(t, "reject", http.StatusOK)
	eve := w.signIn("every")
	p := eve.get("/console/audit")
	p.wants(t, "the audit", http.StatusOK, "I &lt;/title&gt;", "&lt;U&#43;202E&gt;", "&lt;U&#43;200B&gt;", "The journals are whole")
	p.text = ownScript.ReplaceAllString(p.text, "")
	for _, bad := range []string{"<script", "<img", "<svg/", "onerror=alert(1)>", "\u202e", "\u2066", "\u200b", "\U000e0041", " style="} {
		if strings.Contains(p.text, bad) {
			t.Errorf("it has %q", bad)
		}
	}
	for _, c := range []byte(eve.get("/console/audit/export").text) {
		if (c < ' ' || c > '~') && c != '\n' {
			t.Fatalf("byte %#x in the export", c)
		}
	}
	w.nats.Alter(t, "FORGE_JOURNAL", "forge.journal.shop."+id, "pay ten", "pay 999")
	if _, err := w.bus.Journal.Projects(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	var altered page
	wait.Until(t, "the audit is told again", func() bool { altered = eve.get("/console/audit"); return altered.status == http.StatusOK })
	altered.wants(t, "an altered journal", http.StatusOK, "The journals do not prove what they hold", "<b>broken</b>", "forge.journal.shop."+id)
	if !regexp.MustCompile(`record \d+: `).MatchString(altered.text) {
		t.Error("it is not told which record")
	}
}

// TestAuditIsBounded: an event with the longest texts leaves room for an
// answer, and following next comes to the end.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	long := strings.Repeat("<", 60_000)
	path, _ := w.proposed("long")
	for i := range 20 {
		w.request("ada", http.MethodPost, path+"/pause", fmt.Sprintf(`{"reason": "%d %s"}`, i, long)).wants(t, "pause", http.StatusOK)
		w.request("ada", http.MethodPost, path+"/resume", "").wants(t, "resume", http.StatusOK)
	}
	n := 0
	for after := ""; ; {
		got := w.request("every", http.MethodGet, auditPath+"?limit=1000&after="+after, "")
		got.wants(t, "a page", http.StatusOK)
		if len(got.text) > 800<<10 {
			t.Errorf("a page has %d bytes", len(got.text))
		}
		var a document.Audit
		if err := json.Unmarshal([]byte(got.text), &a); err != nil {
			t.Fatal(err)
		}
		for _, e := range a.Events {
			if len(e.Data.Reason) > 2100 {
				t.Errorf("a reason has %d bytes", len(e.Data.Reason))
			}
		}
		n += len(a.Events)
		if after = a.Next; after == "" {
			break
		}
	}
	if n < 41 {
		t.Errorf("%d events", n)
	}
}

package outside

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestWhoIsNotLetIn asks with tokens that are missing, made up, expired, of
// another project or of another role. Nothing is done, and no token is in the log.
func TestWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	path, plan := w.proposed("guarded")
	approve, approval := path+"/approve", `{"plan": "`+plan+`"}`
	w.secrets["forged"] = "pflt_" + strings.Repeat("A", 43)
	w.secrets["hash"] = sha(w.secrets["ada"])
	w.secrets["long"] = strings.Repeat("x", 5000)
	w.secrets["cut"] = w.secrets["ada"][:len(w.secrets["ada"])-1]
	for _, who := range []string{"", "forged", "hash", "long", "cut", "former"} {
		a := w.request(who, http.MethodPost, approve, approval)
		a.wants(t, who, http.StatusUnauthorized)
		if a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate is %q", who, a.header.Get("WWW-Authenticate"))
		}
	}
	for _, header := range []string{"Basic " + w.secrets["ada"], w.secrets["ada"], "Bearer", "Bearer ", "Bearer " + w.secrets["ada"] + " x"} {
		w.request("", http.MethodGet, path, "", "Authorization", header).wants(t, "a header", http.StatusUnauthorized)
	}
	r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, w.base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Authorization"] = []string{"Bearer " + w.secrets["ada"], "Bearer " + w.secrets["bob"]}
	w.send(r).wants(t, "two headers", http.StatusUnauthorized)
	for who, verb := range map[string]string{"viewer": "approve", "banker": "approve", "every": "approve", "scanner": "approve", "bob": "cancel"} {
		w.request(who, http.MethodPost, path+"/"+verb, approval).wants(t, who, http.StatusForbidden)
	}
	w.request("banker", http.MethodGet, path, "").wants(t, "another project", http.StatusForbidden)
	w.request("banker", http.MethodGet, "/api/v1/projects/none/intents", "").wants(t, "no project", http.StatusForbidden)
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] != "approval" {
		t.Errorf("it is %s", shown.text)
	}
	w.request("ada", http.MethodPost, intents, `{"`+w.secrets["ada"]+`": "x"}`).wants(t, "a token as a field", http.StatusBadRequest)
	for name, secret := range w.secrets {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the token %s is in the log", name)
		}
	}
	list := map[string]string{}
	for name, rest := range entries {
		if list[name] = rest; name == "bob" {
			delete(list, name)
		}
	}
	w.writeTokens(list)
	wait.Until(t, "a token that was removed is refused", func() bool { return w.request("bob", http.MethodGet, path, "").status == http.StatusUnauthorized })
}

// TestTricks sends what no client of ours sends: paths, sizes, types and contents.
func TestTricks(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	path, _ := w.proposed("tricks")
	const wish = `{"title": "t", "body": "b"}`
	for _, bad := range []struct {
		method, path, body string
		status             int
		want               string
		headers            []string
	}{
		{http.MethodGet, "/api/v1/projects/../../x", "", 404, "", nil},
		{http.MethodGet, "/api/v1/projects/shop%2f..%2fbank/intents", "", 404, "", nil},
		{http.MethodGet, "/api/v1/projects/shop/intents/", "", 404, "", nil},
		{http.MethodGet, "/api/v1/projects/SHOP/intents", "", 400, `"field":"project"`, nil},
		{http.MethodGet, "/api/v1/projects/%2a/intents", "", 400, `"field":"project"`, nil},
		{http.MethodGet, "/api/v1/projects/shop.by.ada/intents", "", 400, `"field":"project"`, nil},
		{http.MethodGet, intents + "/a%00b", "", 400, `"field":"intent"`, nil},
		{http.MethodGet, intents + "/%3e", "", 400, `"field":"intent"`, nil},
		{http.MethodGet, intents + "/" + strings.Repeat("a", 300), "", 400, `"field":"intent"`, nil},
		{http.MethodGet, intents + "?limit=0", "", 400, `"field":"limit"`, nil},
		{http.MethodGet, intents + "?limit=501", "", 400, `"field":"limit"`, nil},
		{http.MethodGet, intents + "?limit=1&limit=2", "", 400, "is given twice", nil},
		{http.MethodGet, intents + "?status=bogus", "", 400, `"field":"status"`, nil},
		{http.MethodGet, intents + "?since=yesterday", "", 400, `"field":"since"`, nil},
		{http.MethodGet, intents + "?sort=id", "", 400, `"field":"sort"`, nil},
		{http.MethodPut, intents, wish, 405, "POST, GET", nil},
		{http.MethodGet, "/api/v2/x", "", 404, "", nil},
		{http.MethodPost, intents, wish, 415, "application/json", []string{"Content-Type", "text/plain"}},
		{http.MethodPost, intents, wish, 415, "", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{http.MethodPost, intents, `{"titel": "t", "priority": "a"}`, 400, `"title","reason":"is empty"},{"field":"body"`, nil}, // all at once
		{http.MethodPost, intents, `{"title": "t", "title": "u", "body": "b"}`, 400, `"field":"title","reason":"is given twice"`, nil},
		{http.MethodPost, intents, `{"titel": "t", "priority": "high"}`, 400, `"field":"titel"`, nil},
		{http.MethodPost, intents, `{"title": "t", "body": "b"} {}`, 400, "has something after its end", nil},
		{http.MethodPost, intents, `[]`, 400, "is not a JSON object", nil},
		{http.MethodPost, intents, "", 400, "", nil},
		{http.MethodPost, intents, `{"title": "t", "body": "b", "source": "system", "origin": {"system": "x"}}`, 400, `"field":"origin"`, nil},
		{http.MethodPost, intents, `{"title": "t", "body": "b", "source": "reflection"}`, 400, `"field":"source"`, nil},
		{http.MethodPost, intents, `{"title": "t", "body": "b", "criteria": [{"command": "rm -rf /"}]}`, 400, `criteria[0]`, nil},
		{http.MethodPost, intents, `{"title": "t\nu", "body": "b"}`, 400, `"field":"title"`, nil},
		{http.MethodPost, intents, wish, 400, "Idempotency-Key", []string{"Idempotency-Key", "a b"}},
		{http.MethodPost, intents, wish, 400, "Idempotency-Key", []string{"Idempotency-Key", strings.Repeat("k", 201)}},
		{http.MethodPost, intents, `{"id": "x", "title": "t", "body": "b"}`, 400, `"field":"id"`, []string{"Idempotency-Key", "k"}},
		{http.MethodPost, path + "/answer", `{"index": -1}`, 400, `"field":"answer"`, nil},
		{http.MethodPost, path + "/cancel", `{"task": "../x"}`, 400, `"field":"task"`, nil},
		{http.MethodPost, path + "/pause", `{"number": 7}`, 400, `"field":"number"`, nil},
		{http.MethodPost, path + "/edit", `{}`, 400, "changes nothing", nil},
		{http.MethodPost, path + "/teach", `{}`, 404, "", nil},
		{http.MethodPost, intents, `{"title": "t", "body": "` + strings.Repeat("x", 64<<10+1) + `"}`, 400, `"field":"body"`, nil},
		{http.MethodPost, intents, `{"title": "t", "body": "` + strings.Repeat("x", 25<<20) + `"}`, 413, "", nil},
	} {
		about := bad.method + " " + bad.path + " " + bad.body[:min(len(bad.body), 60)]
		w.request("ada", bad.method, bad.path, bad.body, bad.headers...).wants(t, about, bad.status, bad.want)
	}
	if list := w.request("ada", http.MethodGet, intents, "").body["intents"].([]any); len(list) != 1 {
		t.Errorf("there are %d intents", len(list))
	}
}

// TestSlowAndLargeHeaders opens connections that send a header slowly, or a large one: they end.
func TestSlowAndLargeHeaders(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	dial := func(text string) net.Conn {
		c, err := (&net.Dialer{}).DialContext(wait.Context(t), "tcp", strings.TrimPrefix(w.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	slow := dial("GET /api/v1/projects/shop/intents HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	large := dial("GET /api/v1/projects/shop/intents HTTP/1.1\r\nHost: x\r\nX-Large: " + strings.Repeat("x", 40<<10) + "\r\n\r\n")
	line, err := bufio.NewReader(large).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("a large header is answered with %q, %v", line, err)
	}
	split := dial("GET /api/v1/projects/shop/intents HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\n\tb\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
	if line, err := bufio.NewReader(split).ReadString('\n'); err != nil || !strings.Contains(line, "400") {
		t.Errorf("two lengths are answered with %q, %v", line, err)
	}
	text, err := io.ReadAll(slow)
	if err != nil || len(text) > 0 && !strings.Contains(string(text), "408") && !strings.Contains(string(text), "400") {
		t.Errorf("a slow header is answered with %q, %v", text, err)
	}
}

// TestTooOften: a token that asks too often waits, and others do not.
func TestTooOften(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{PerSecond: 0.001, Burst: 2})
	w.decides(quota.Limits{})
	for range 2 {
		w.request("ada", http.MethodGet, intents, "").wants(t, "ada", http.StatusOK)
	}
	a := w.request("ada", http.MethodGet, intents, "")
	a.wants(t, "ada, once more", http.StatusTooManyRequests)
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
	}
	w.request("bob", http.MethodGet, intents, "").wants(t, "bob", http.StatusOK)
}

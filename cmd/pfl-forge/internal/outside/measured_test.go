package outside

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
)

// TestRequestsAreMeasured asks at every address of the gateway: each is told apart
// in the metrics, with what was answered, and whatever else is asked for is not.
func TestRequestsAreMeasured(t *testing.T) {
	t.Parallel()
	hooksFile := filepath.Join(t.TempDir(), "hooks.yaml")
	if err := os.WriteFile(hooksFile, []byte("hooks: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	e, err := export.Open(t.Context(), export.Config{
		Service: "gateway", Replica: "g1", Version: "v1", Scrape: true, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	w.metrics = e.Recorder
	_, w.base = w.gateway(gateway.Settings{
		Listen: "127.0.0.1:0", Tokens: w.file, Hooks: hooksFile, Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")},
	})

	want := []string{
		`http_request_method="POST",http_response_status_code="404",http_route="/hooks/{name}"`,
		`http_request_method="POST",http_response_status_code="201",http_route="/api/v1/projects/{project}/intents"`,
		`http_request_method="other",http_response_status_code="404",http_route="other"`,
		`http_request_method="other",http_response_status_code="405",http_route="/api/v1/projects/{project}/intents"`,
	}
	for _, r := range api.Routes() {
		path := strings.NewReplacer("{project}", "shop", "{intent}", "x").Replace(r.Path)
		w.request("", r.Method, path, "").wants(t, r.Method+" "+path, http.StatusUnauthorized)
		want = append(want, `http_request_method="`+r.Method+`",http_response_status_code="401",http_route="`+r.Path+`"`)
	}
	b := &browser{w: w}
	for _, r := range console.Routes() { // without a session
		path := strings.NewReplacer("{project}", "shop", "{intent}", "x", "{$}", "", "{stamp}", "x", "{file}", "y").Replace(r.Path)
		p := b.do(r.Method, path, url.Values{}) // a form, whatever the method
		want = append(want, `http_request_method="`+r.Method+`",http_response_status_code="`+strconv.Itoa(p.status)+`",http_route="`+r.Path+`"`)
	}
	b.get("/console/nothing").wants(t, "nothing", http.StatusNotFound)
	want = append(want, `http_request_method="GET",http_response_status_code="404",http_route="/console/"`)
	w.request("ada", http.MethodPost, intents, `{"title": "Mend it", "body": "Please."}`).wants(t, "a change", http.StatusCreated)
	w.request("ada", http.MethodDelete, intents, "").wants(t, "another method", http.StatusMethodNotAllowed)
	for path, method := range map[string]string{
		"/hooks/unknown": http.MethodPost, "/nowhere": "MADE-UP", "/nowhere/" + strings.Repeat("x", 100): http.MethodDelete, intents + "/..": http.MethodPut,
	} {
		w.lost(method, path)
	}

	shown := httptest.NewRecorder()
	e.Metrics.ServeHTTP(shown, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	const count = "http_server_request_duration_seconds_count{"
	got := map[string]bool{}
	for line := range strings.Lines(shown.Body.String()) {
		if labels, ok := strings.CutPrefix(line, count); ok {
			labels, _, _ = strings.Cut(labels, "} ")
			got[labels] = true
		}
	}
	for _, labels := range want {
		if !got[labels] {
			t.Errorf("%s is not measured", labels)
		}
		delete(got, labels)
	}
	for labels := range got {
		t.Errorf("%s is measured, too", labels)
	}
}

// lost asks for what is not there.
func (w *world) lost(method, path string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(w.t), method, w.base+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusNotFound {
		w.t.Errorf("%s %s: %d", method, path, resp.StatusCode)
	}
}

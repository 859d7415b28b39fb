package outside

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestConsoleLeadsToThePullRequest: the page of a change that is merged by a pull request
// says where it is and leads there, while it is open by a button with what happens there,
// and not when it is merged; the API tells the same of this intent, and of no other.
func TestConsoleLeadsToThePullRequest(t *testing.T) {
	t.Parallel()
	pw := newPullWorld(t, "by: forge, method: squash")
	pw.open()
	stop := pw.gateway()
	opened := pw.pull("is opened", func(p *pull) bool { return p.State == "open" })
	w := &world{t: t, nats: pw.nats, bus: pw.nats.Connect(t), secrets: map[string]string{}, file: filepath.Join(t.TempDir(), "tokens.yaml"), log: &locked{}}
	w.writeTokens(entries)
	_, w.base = w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	path := intents + "/" + string(pw.intent().Key.Intent)
	vic := w.signIn("viewer")
	var p page
	wait.Until(t, "the page has it", func() bool {
		p = vic.get(consolePath(path))
		return strings.Contains(p.text, "</a>, open</li>")
	})
	link := fmt.Sprintf(`<a href="%s/%s/pulls" rel="noreferrer noopener">pull request %d</a>, open`, pw.url, pw.repo, opened.Number)
	p.wants(t, "the page", http.StatusOK, link, fmt.Sprintf("Open pull request %d</a>", opened.Number), "comes back here with the next look at it",
		fmt.Sprintf("pull request %d", opened.Number))
	asked := w.request("viewer", http.MethodGet, "/api/v1/projects/shop/queue?intent="+string(pw.intent().Key.Intent), "")
	asked.wants(t, "by the API", http.StatusOK, fmt.Sprintf(`"number":%d,"state":"open"`, opened.Number), `"changes":[{`)
	w.request("viewer", http.MethodGet, "/api/v1/projects/shop/queue?intent=other", "").wants(t, "another intent", http.StatusOK, `"changes":[]`)
	w.request("viewer", http.MethodGet, "/api/v1/projects/shop/queue?intent=..", "").wants(t, "no intent", http.StatusBadRequest, `"field":"intent"`)
	if all := w.request("viewer", http.MethodGet, "/api/v1/projects/shop/queue", ""); strings.Contains(all.text, `"pulls"`) {
		t.Errorf("the whole queue has pull requests: %s", all.text)
	}
	pw.check(opened.Head.SHA, "success")
	pw.review(&opened, "APPROVED", "Good.")
	stop()
	pw.gateway()
	pw.pull("is merged", func(p *pull) bool { return p.Merged })
	wait.Until(t, "the page says so", func() bool {
		p = vic.get(consolePath(path))
		return strings.Contains(p.text, "<b class=\"yes\">merged</b> as")
	})
	if strings.Contains(p.text, "Open pull request") {
		t.Errorf("there is a button for what is over:\n%s", p.text)
	}
}

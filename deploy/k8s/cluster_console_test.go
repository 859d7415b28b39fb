//go:build cluster

package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// console has a person decide in a browser, at the gateway in its pod: they sign in, find in
// the inbox what another system asked for, and approve exactly the plan that its page shows.
// Every page is looked at. What they approved has to be merged, which the caller waits for.
func (in *installation) console(t *testing.T) {
	t.Helper()
	base := in.forward(wait.Context(t), t, "gateway", 8081)
	path := in.risky(t, base, "by-hand-000")
	ctx := openBrowser(t)
	acts(ctx, t, chromedp.Navigate(base+"/console/"), chromedp.WaitVisible(chromedp.CSS("#token")), chromedp.SendKeys(chromedp.CSS("#token"), in.person),
		chromedp.Submit(chromedp.CSS("#token")), chromedp.WaitVisible(chromedp.CSS("article.card")))
	page := strings.Replace(path, "/api/v1/", "/console/", 1)
	if linked := reads[bool](ctx, t, fmt.Sprintf("document.querySelector('article.card a[href^=%q]') != null", page)); !linked {
		t.Errorf("the inbox does not lead to %s", page)
	}
	acts(ctx, t, chromedp.Navigate(base+page), chromedp.WaitVisible(chromedp.CSS("form.approve button")), chromedp.Click(chromedp.CSS("form.approve button")))
	wait.Until(t, "the page says who has approved", func() bool { // which takes the place of the page with the button
		said, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector('#decided')?.textContent ?? ''"))
		return err == nil && strings.Contains(said, "decider via gateway: approve")
	})
	for _, address := range []string{
		"/console/inbox", "/console/board", page, page + "/timeline", "/console/costs", "/console/health", "/console/audit", "/console/settings",
	} {
		wait.Until(t, address+" is shown", func() bool { // a runner that meets journals for the first time may say to come again
			acts(ctx, t, chromedp.Navigate(base+address), chromedp.WaitVisible(chromedp.CSS("main")))
			status := reads[int](ctx, t, "performance.getEntriesByType('navigation')[0].responseStatus")
			if status != http.StatusOK {
				t.Logf("%s is answered by %d: %s", address, status, reads[string](ctx, t, "document.querySelector('main').innerText"))
			}
			return status == http.StatusOK
		})
	}
}

// risky has the other system ask for a change that waits for a person's
// approval, and returns its path in the API once it does.
func (in *installation) risky(t *testing.T, base, id string) (path string) {
	t.Helper()
	wish := fmt.Sprintf(`{"title": "Write %s", "body": "Please.", "type": "feature", "risk": "high", "recipe": "write", "with": {"NAME": %q}}`, id, id)
	header := in.api(t, http.MethodPost, base+"/api/v1/projects/shop/intents", wish, nil)
	in.asked = append(in.asked, id)
	path = header.Get("Location")
	wait.Until(t, "it waits for approval", func() bool {
		var shown struct{ Waiting string }
		in.api(t, http.MethodGet, base+path, "", &shown)
		return shown.Waiting == "approval"
	})
	return path
}

// api asks the gateway as the other system, and decodes its answer.
func (in *installation) api(t *testing.T, method, url, body string, into any) http.Header {
	t.Helper()
	request, err := http.NewRequestWithContext(wait.Context(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+in.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s is answered by %s", method, url, response.Status)
	}
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return response.Header
}

// openBrowser starts Chromium with an empty profile. It ends with the test.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("PFL_FORGE_CHROMIUM")
	if path == "" {
		path = "/usr/bin/chromium"
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: install Chromium with make browser, or name one in PFL_FORGE_CHROMIUM", err)
	}
	ctx, end := chromedp.NewExecAllocator(wait.Context(t), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	return ctx
}

// acts carries out steps in a browser.
func acts(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// reads returns the value of an expression in the page of a browser.
func reads[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

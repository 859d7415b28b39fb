package outside

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDemoInChromium runs the demo, serves its repository to a browser by the address that
// pfl-forge console prints, and reads there what became of a change that was rejected once:
// its verified commit is the one on the base branch. The pictures are those of the README.
func TestDemoInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	bin, home, dir := filepath.Join(t.TempDir(), "pfl-forge"), t.TempDir(), filepath.Join(testdir.New(t), "demo")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = Ada\nemail = ada@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	forge := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), bin, args...)
		c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "GIT_CONFIG_GLOBAL=")
		return c
	}
	if out, err := forge("demo", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	at := serves(t, forge("-C", dir, "console"))
	base := at.Scheme + "://" + at.Host
	acts(ctx, t, chromedp.Navigate(at.String()), chromedp.WaitVisible("article.card"), chromedp.Navigate(base+"/console/board"))
	address := reads(ctx, t, chromedp.Evaluate[string](
		`Array.from(document.querySelectorAll("main a")).find(a => a.textContent.includes("A glossary of our terms")).getAttribute("href")`))
	for _, one := range []view{{"readme-board", "/console/board", "light", 1100, 560}, {"readme-change", address, "light", 1100, 900}} {
		one.picture(ctx, t, base)
	}
	page := reads(ctx, t, chromedp.Text("main"))
	head, err := exec.CommandContext(t.Context(), "git", "-C", dir, "log", "-1", "--format=%H", "--grep", "A glossary of our terms", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"merged as " + strings.TrimSpace(string(head))[:12], "GLOSSARY.txt", "greeting"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// serves starts a command that prints an address first, and ends it with the test.
func serves(t *testing.T, c *exec.Cmd) *url.URL {
	t.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- line
	}()
	select {
	case line := <-lines:
		at, err := url.Parse(strings.TrimSpace(line))
		if err != nil || at.Host == "" {
			t.Fatalf("it printed %q: %v", line, err)
		}
		return at
	case <-wait.Context(t).Done():
		t.Fatal("it prints no address")
	}
	return nil
}

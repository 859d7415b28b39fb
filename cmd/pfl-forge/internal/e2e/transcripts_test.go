package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestTranscriptsOutliveTheirStream: what an attempt did can be read when the stream of
// transcripts is gone, also what it did before its implementer was killed, until it is
// cleaned.
func TestTranscriptsOutliveTheirStream(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, map[string]string{"pfl-forge.yaml": `base_branch: main
recipes:
  wait:
    params: [{name: GO, question: "For which file?"}]
    run: |
      echo "a life begins"
      until test -e "$GO"; do sleep 0.05; done
      echo "it ends"; echo x > waited.txt
`}, unconfined)
	one, two := c.procs[3], c.procs[4]
	two.kill() // it would wait for the lease of the other one
	goOn := filepath.Join(c.dir, "go")
	if got := c.forge("create", "slow", "--title", "Slow", "--recipe", "wait", "--with", "GO="+goOn); got.code != 0 {
		t.Fatalf("create: %+v", got)
	}
	lives := func(n int) func() bool {
		return func() bool { return strings.Count(c.forge("logs", "slow").stdout, "a life begins") == n }
	}
	wait.Until(t, "the start", lives(1))
	one.kill()
	c.start(one)
	wait.Until(t, "the next life", lives(2))
	write(t, goOn, "")
	c.says(c.forge("run"), 0)
	before := c.logged()
	if text := strings.Join(before, ""); strings.Count(text, "a life begins") != 2 || strings.Count(text, "it ends") != 1 {
		t.Errorf("the stream has\n%s", text)
	}
	c.dropTranscripts()
	if diff := cmp.Diff(before, c.logged()); diff != "" {
		t.Errorf("without the stream: %s", diff)
	}
	c.says(c.forge("clean", "slow", "-o", "json"), 0, `"removed": true`)
	if text := strings.Join(c.logged(), ""); strings.Contains(text, "a life begins") || !strings.Contains(text, `"kind":"decided"`) {
		t.Errorf("after clean there is\n%s", text)
	}
}

// logged returns all lines that logs prints, sorted.
func (c *cluster) logged() []string {
	c.t.Helper()
	got := c.forge("logs", "slow", "-o", "ndjson")
	if got.code != 0 || got.stderr != "" {
		c.t.Fatalf("logs: %+v", got)
	}
	return slices.Sorted(strings.Lines(got.stdout))
}

// dropTranscripts has the stream of transcripts deleted, and made again. An
// administrator has to take the line out that withholds this call.
func (c *cluster) dropTranscripts() {
	c.t.Helper()
	path := filepath.Join(c.dir, "auth.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	write(c.t, path, regexp.MustCompile(`(?m)^.*STREAM\.DELETE\.FORGE_TRANSCRIPTS".*\n`).ReplaceAllString(string(conf), ""))
	c.reload()
	admin := c.administrator()
	nc, err := nats.Connect(admin.URL, nats.RootCAs(admin.TLS.CA))
	if err != nil {
		c.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = js.DeleteStream(c.t.Context(), "FORGE_TRANSCRIPTS")
	}
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := bus.Connect(c.t.Context(), admin)
	if err != nil {
		c.t.Fatal(err)
	}
	defer b.Close()
	if err := b.Ensure(c.t.Context()); err != nil { // a runner does so, too, within ten seconds
		c.t.Fatal(err)
	}
}

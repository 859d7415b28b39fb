package bus_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestWithheld: the calls that destroy what lasts are heard by nobody, whoever
// makes them, and those that runners and workers need are.
func TestWithheld(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	admin, _ := as(t, s, "admin")
	before := installation(ctx, t, jetStream(t, admin))
	for _, call := range access.Withheld() {
		if answer, err := admin.RequestWithContext(ctx, strings.ReplaceAll(call, "*", "runner"), nil); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s is answered with %v, %v", call, answer, err)
		}
	}
	if after := installation(ctx, t, jetStream(t, admin)); after != before {
		t.Errorf("there was\n%s\nand is\n%s", before, after)
	}
	for _, call := range []string{"STREAM.DELETE.FORGE_COMMANDS", "STREAM.DELETE.FORGE_WAKES", "STREAM.PURGE.OBJ_FORGE", "STREAM.MSG.DELETE.FORGE_PROJECTS"} {
		if slices.Contains(access.Withheld(), "$JS.API."+call) {
			t.Errorf("%s is withheld from those who need it", call)
		}
	}
	// An acknowledgement names a sequence, as a request to purge or to delete a
	// message does. The server is strict: it has a stream, too.
	if answer, err := admin.RequestWithContext(ctx, "$JS.API.STREAM.PURGE.FORGE_COMMANDS", []byte(`{"stream":"FORGE_INTENTS","seq":7}`)); err != nil ||
		!bytes.Contains(answer.Data, []byte("unknown field")) {
		t.Errorf("an acknowledgement is taken for a request: %v, %v", answer, err)
	}
}

// TestWithheldByAReload: a server that ran without them withholds the calls
// once it has read its configuration again.
func TestWithheldByAReload(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	dir := t.TempDir()
	read := func(text string) *server.Options { return readConf(t, dir, text) }
	runner, err := access.NewAccount(access.Runner, "")
	if err != nil {
		t.Fatal(err)
	}
	users := []access.User{{Account: runner, Proof: "user: runner, password: RUNNER"}}
	conf := strings.Replace(access.Conf(users, access.Accounts(users)), "users: [", "users: [ { user: admin, password: ADMIN }", 1)
	former, _, _ := strings.Cut(conf, "accounts {")
	s := start(t, read(former))
	if err := connectAs(ctx, t, s, "runner", "RUNNER").Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	admin, _ := as(t, s, "admin")
	const call = "$JS.API.STREAM.PURGE.FORGE_JOURNAL"
	if _, err := admin.RequestWithContext(ctx, call, nil); err != nil {
		t.Errorf("before: %v", err)
	}
	if err := s.ReloadOptions(read(conf)); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RequestWithContext(ctx, call, nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after: %v", err)
	}
}

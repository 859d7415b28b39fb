package announced_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service/announced"
)

// only returns the replica that is there; an empty one if none is.
func only(t *testing.T, b *bus.Bus) presence.Replica {
	t.Helper()
	list, err := b.Presence.Gather(wait.Briefly(t, 300*time.Millisecond), nil)
	if err != nil || len(list) > 1 {
		t.Fatal(list, err)
	}
	if len(list) == 0 {
		return presence.Replica{}
	}
	return list[0]
}

// TestUnwellStays: a replica that is not well and announces what else it has found
// out says all the time why and since when it is not, however long the reason is.
func TestUnwellStays(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	var a announced.Announcer
	a.AddCheck(func(context.Context) error { return errors.New("the disk is full " + strings.Repeat("x", 1<<20)) })
	r := presence.Replica{Service: "analyzer", ID: "w1", Started: time.Now()}
	a.Announce(t.Context(), b.Presence, slog.New(slog.DiscardHandler), &r)
	defer a.Leave()
	var first presence.Replica
	wait.Until(t, "it says why it is not well", func() bool {
		first = only(t, b)
		return strings.HasPrefix(first.Unwell, "the disk is full")
	})
	r.Agents = []string{"codex"}
	a.Announce(t.Context(), b.Presence, slog.New(slog.DiscardHandler), &r)
	if again := only(t, b); len(again.Agents) != 1 || again.Unwell != first.Unwell || !again.Since.Equal(first.Since) {
		t.Errorf("with what it found out it says %q since %s, with %s", again.Unwell, again.Since, again.Agents)
	}
}

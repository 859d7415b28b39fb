package target

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/git/gittest"
)

// TestLongWaitIsTold checks that a person is told, once, why a command does
// nothing; and nothing where it is only a moment.
func TestLongWaitIsTold(t *testing.T) {
	repo := gittest.New(t, map[string]string{"a.txt": "a\n"})
	for waited, told := range map[time.Duration]int{noticeAfter - time.Second: 0, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			var says bytes.Buffer
			app := &kit.App{Where: kit.Where{Dir: repo.Dir}, Err: &says, Getenv: func(string) string { return "" }}
			held := errors.New("held")
			_, err := open(t.Context(), app, func(ctx context.Context, _ *local.Repository) (*local.Session, error) {
				ctx, cancel := context.WithTimeout(ctx, waited)
				defer cancel()
				<-ctx.Done()
				return nil, held
			})
			if !errors.Is(err, held) {
				t.Error(err)
			}
			synctest.Wait()
			if got := strings.Count(says.String(), "commands use this repository's store"); got != told {
				t.Errorf("after %s: %q", waited, says.String())
			}
		})
	}
}

// TestNoServerIsToldAtOnce checks that a person is told which server is not there, and why,
// and is not made to wait for it as a service would.
func TestNoServerIsToldAtOnce(t *testing.T) {
	app := &kit.App{
		Where:  kit.Where{Dir: t.TempDir(), Server: "nats://someone:pass1@nats.invalid:4222", Project: "shop"},
		Getenv: func(string) string { return "" },
	}
	_, err := Connect(t.Context(), app)
	if err == nil || !strings.HasPrefix(err.Error(), "nats://nats.invalid:4222: connect to the NATS server: dial tcp: lookup nats.invalid") {
		t.Errorf("got %v", err)
	}
}

package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestPagesThatCannotBeRead checks that whoever asks for what a newer version wrote, or for
// more than can be read while they wait, is told so and what to do, before they give up.
func TestPagesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	asked := time.Now()
	ending, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Submissions.Serve(ending, requests.ServeConfig{
			Costs: func(context.Context, forge.ProjectID, document.CostsRequest) (document.Costs, error) {
				return document.Costs{}, fmt.Errorf("follow journals: %w", &bus.UnknownError{})
			},
			Audit: func(ctx context.Context, _ forge.ProjectID, _ document.AuditRequest) (document.Audit, error) {
				if ends, ok := ctx.Deadline(); !ok || time.Until(ends) > 10*time.Second-time.Second/2 {
					t.Errorf("reading may take from %s to %s", asked, ends)
				}
				return document.Audit{}, fmt.Errorf("read journals: %w", context.DeadlineExceeded)
			},
		}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	for verb, want := range map[string]string{
		subjects.VerbCosts: "when all runners are updated",
		subjects.VerbAudit: "more to read than a request has time for",
	} {
		var refused *requests.RequestError
		var page json.RawMessage
		wait.Until(t, "the requests are answered", func() (heard bool) {
			var err error
			page, err = b.Submissions.Page(ctx, "shop", "door", verb, struct{}{})
			return errors.As(err, &refused)
		})
		if refused.Code != http.StatusServiceUnavailable || !strings.Contains(refused.Error(), want) {
			t.Errorf("%s: %d %v, %s", verb, refused.Code, refused, page)
		}
	}
}

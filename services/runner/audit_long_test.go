package runner_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// late is a context whose time is over.
type late struct {
	context.Context //nolint:containedctx // it is one

	over chan struct{}
}

func (l late) Done() <-chan struct{} { return l.over }

func (late) Err() error { return context.DeadlineExceeded }

// TestAuditOfTooMuch: where the journals of a project are more than there is
// time to read, an auditor is told how to read them all the same.
func TestAuditOfTooMuch(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	over := make(chan struct{})
	close(over)
	_, err := runner.Audit(late{t.Context(), over}, b, "shop", document.AuditRequest{Limit: 100})
	refused, ok := errors.AsType[*requests.RequestError](err)
	if !ok || refused.Code != http.StatusServiceUnavailable || !strings.Contains(refused.Error(), "pfl-forge audit-log export") {
		t.Errorf("it is told %v", err)
	}
}

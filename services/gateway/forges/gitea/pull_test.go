package gitea_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// TestNamesOfBranches: no branch becomes another path or another repository,
// and no method leaves the head open.
func TestNamesOfBranches(t *testing.T) {
	f := forgetest.NewFake()
	defer f.Close()
	c, ctx := clientOf(t, f.URL()), wait.Context(t)
	for _, b := range []git.Branch{"", "../issues", "a..b", "eve:main", "a b", "-x", "a?b", "a\r\nHost: x", "refs/heads/x"} {
		if _, err := c.FindPull(ctx, "root1/r", b, "main"); err == nil || !strings.Contains(err.Error(), "branch") {
			t.Errorf("find of %q: %v", b, err)
		}
		if _, err := c.OpenPull(ctx, "root1/r", "forge/a", b, forges.PullText{Title: "x"}); err == nil || !strings.Contains(err.Error(), "branch") {
			t.Errorf("open into %q: %v", b, err)
		}
		if _, err := c.Protection(ctx, "root1/r", b); err == nil || !strings.Contains(err.Error(), "branch") {
			t.Errorf("protection of %q: %v", b, err)
		}
	}
	if err := c.SetStatus(ctx, "root1/r", "../../user", &forges.Status{Name: "x", Outcome: forges.Passed}); err == nil {
		t.Error("a status of a path")
	}
	if n := f.Asked("GET", "") + f.Asked("POST", ""); n != 0 {
		t.Errorf("the forge was asked %d times", n)
	}
}

// TestMergeRefusals: a forge that has not computed yet says again, and every
// other refusal is told with its number and reason as a line.
func TestMergeRefusals(t *testing.T) {
	f := forgetest.NewFake()
	defer f.Close()
	c, ctx := clientOf(t, f.URL()), wait.Context(t)
	const head = "a466e452e239ae3ae94b6b16ce3ca92377690546"
	for _, test := range []struct {
		fault forgetest.Fault
		again bool
		want  string
	}{
		{forgetest.Fault{Status: 405, Message: "Please try again later"}, true, "(405): Please try again later"},
		{forgetest.Fault{Status: 405, Message: "Does not have enough approvals"}, false, "enough approvals"},
		{forgetest.Fault{Status: 409, Message: "head out of date"}, false, "(409): head out of date"},
		{forgetest.Fault{Status: 409, Message: "Please try again later"}, false, "(409)"},
		{forgetest.Fault{Status: 405, Message: "a\nb\x1b[2J" + strings.Repeat("x", 10000)}, false, "(405): a"},
	} {
		f.Script(test.fault)
		err := c.Merge(ctx, "root1/r", 1, head, forges.FastForward)
		refused, ok := errors.AsType[*forges.RefusedError](err)
		if !ok || refused.Again != test.again || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%+v: %v", test.fault, err)
		}
	}
	f.Script(forgetest.Fault{Status: 403, Header: http.Header{"Retry-After": {"60"}}})
	if parked, ok := errors.AsType[*forges.ParkedError](c.Merge(ctx, "root1/r", 1, head, forges.FastForward)); !ok || !parked.Until.Equal(now.Add(time.Minute)) {
		t.Errorf("a secondary limit: %+v", parked)
	}
}

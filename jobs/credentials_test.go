package jobs_test

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestOriginRefusesCredentials has the token of an origin end. Whatever is
// asked of it then waits, as for one that is away, and a probe says when there
// is another token. One that may read and not write is no better.
func TestOriginRefusesCredentials(t *testing.T) {
	t.Parallel()
	dir := gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "config", "http.receivepack", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1"},
	}
	const all, writes, nothing = "everything", "git-receive-pack", "nothing"
	var refuses atomic.Value
	refuses.Store(nothing)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch what := refuses.Load(); {
		case what == all:
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "the token has ended", http.StatusUnauthorized)
		case what == writes && strings.Contains(r.URL.String(), writes):
			http.Error(w, "read only", http.StatusForbidden)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	set := openLate(t, strings.Replace(server.URL, "://", "://someone:pass1@", 1)+"/"+filepath.Base(dir))
	prepare := func(context.Context, *jobs.Repository) error { return nil }
	if err := set.Prepare(t.Context(), prepare); err != nil {
		t.Fatal(err)
	}
	to := forge.Key{Project: repotest.Project, Intent: "fix"}
	probe := func(patience time.Duration) forge.Result {
		return set.Probe(t.Context(), forge.Command{
			To: to, Attempt: forge.Attempt{Step: forge.StepProbe, Number: 1, Claim: 1}, Input: &forge.ProbeInput{Patience: patience},
		}, nil)
	}
	for _, what := range []string{all, writes} {
		refuses.Store(what)
		res := probe(time.Millisecond)
		if f := res.Failure(); f == nil || f.Reason != forge.FailOrigin || !strings.Contains(f.Message, "auth: fatal: ") || strings.Contains(f.Message, "pass1") {
			t.Errorf("refusing %s: the probe says %+v", what, res.Output)
		}
		answer := make(chan forge.Result, 1)
		go func() { answer <- probe(time.Hour) }()
		refuses.Store(nothing)
		if res := wait.For(t, answer); res.Failure() != nil || res.Output == nil {
			t.Errorf("there are other credentials, and the probe says %+v", res.Output)
		}
	}
	refuses.Store(all)
	attempt := forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}
	cmd := &forge.Command{To: to, Attempt: attempt, Input: &forge.AnalyzeInput{PolicyOnly: true}, BudgetUSD: 5}
	res := set.Do(t.Context(), cmd, nil, func(context.Context, *jobs.Job) error { return nil })
	if f := res.Failure(); f == nil || f.Reason != forge.FailOrigin {
		t.Errorf("a step says %+v", res.Output)
	}
}

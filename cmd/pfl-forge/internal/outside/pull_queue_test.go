package outside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// byQueue has the forge merge by its own queue.
const byQueue = "by: forge, method: queue"

// queueWorlds runs a test on each forge: on the fake as a GitHub with a merge queue, a
// GitLab with merge trains and a Gitea, which has no queue and merges when all has passed,
// and on a real Gitea where PFL_FORGE_GITEA names the folder with its url and tokens.
func queueWorlds(t *testing.T, test func(t *testing.T, w *pullWorld)) {
	t.Helper()
	for _, dialect := range []hooks.Kind{hooks.Gitea, hooks.GitHub, hooks.GitLab} {
		t.Run("fake "+string(dialect), func(t *testing.T) {
			t.Parallel()
			w := newPullWorld(t, byQueue)
			w.dialect = dialect
			w.fake.Lab.Set(w.repo, forgetest.Project{Method: "merge", Pipelines: true, Resolved: true})
			w.fake.Queues.On(w.repo, dialect != hooks.Gitea, false)
			test(t, w)
		})
	}
	dir := os.Getenv("PFL_FORGE_GITEA")
	if dir == "" {
		return
	}
	t.Run("gitea", func(t *testing.T) {
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		w := &pullWorld{forgeWorld: &forgeWorld{
			t: t, url: read("url"), repo: fmt.Sprintf("root1/q%d", time.Now().UnixNano()),
			tokens: map[string]string{"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"), "eve": read("eve.token")},
		}}
		w.begin(byQueue, func() string {
			return strings.Replace(w.url, "://", "://bot:"+w.tokens["bot"]+"@", 1) + "/" + w.repo + ".git"
		})
		test(t, w)
	})
}

// TestIssueToTheForgesQueue: a labelled issue becomes a change that is put into the forge's
// own queue, for the very commit that was verified, reviewed and approved, and not before.
// The queue takes it out, since a check failed on what it tried: it is made again with what
// the check wrote, and put in again. What the queue merges is proved, and the issue is
// closed. Between any two of these the gateway is killed, and another one goes on.
func TestIssueToTheForgesQueue(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	queueWorlds(t, func(t *testing.T, w *pullWorld) { //nolint:thelper // it is the test itself
		issue := w.open()
		stop := w.gateway()
		again := func() { stop(); stop = w.gateway() }
		first := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
		w.check(first.Head.SHA, "success")
		again()
		w.waits("waits: it has 0 of 1 approvals")
		if w.fake != nil && w.fake.Queues.Head(w.repo, first.Number) != "" {
			t.Error("it was put in before it was approved")
		}
		w.review(&first, "APPROVED", "Good.")
		again()
		if w.dialect == hooks.Gitea {
			merged := w.pull("is merged", func(p *pull) bool { return p.Merged })
			again() // a real one merges a moment later than it is told to
			w.landed(issue, &first, merged.MergeCommit, "noted")
			return
		}
		queued := func(p *pull) {
			t.Helper()
			wait.Until(t, "it is in the queue", func() bool { return w.fake.Queues.Head(w.repo, p.Number) == p.Head.SHA })
		}
		queued(&first)
		again()
		w.waits(map[hooks.Kind]string{hooks.GitHub: "is in the merge queue, at place 1", hooks.GitLab: "is to be merged by the forge"}[w.dialect])
		tried := w.git(w.origin, "rev-parse", "main")
		w.fake.Hub.Check(forgetest.CheckRun{
			Repository: w.repo, Commit: tried, Name: "build", Status: "completed", Conclusion: "failure", App: "ci", Summary: "no such file",
		})
		w.fake.Queues.Drop(w.repo, first.Number, "failed_checks", "", tried)
		again()
		second := w.pull("is made again", func(p *pull) bool { return p.Head.SHA != first.Head.SHA })
		w.check(second.Head.SHA, "success")
		w.review(&second, "APPROVED", "Better.")
		again()
		queued(&second)
		stop()
		merge := w.fake.Queues.Merge(w.repo, second.Number)
		stop = w.gateway()
		w.landed(issue, &second, merge, "noted\nnoted")
	})
}

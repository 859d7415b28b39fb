package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
)

const (
	enoughDisk = 1 << 30   // bytes below which there is a warning
	leastDisk  = 100 << 20 // bytes below which nothing works for long
	shownDead  = 5         // dead letters that are shown one by one
)

// examine makes all checks, in the order in which they build on each other. It also returns
// the replicas that work for an organisation.
//
// Where there is no repository the checks after that are left out, as all of them need one. A configuration that cannot
// be read leaves out those that read it, and no others. Of an organisation this machine is not looked at: the work is
// done elsewhere.
func examine(ctx context.Context, a *kit.App, deep bool) ([]finding, []replica) {
	if a.Remote() {
		return examineServer(ctx, a, deep)
	}
	found := []finding{checkGit(ctx)}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return append(found, finding{"repository", broken, err.Error(), ""}), nil
	}
	base, err := repo.Base(ctx)
	if err != nil {
		found = append(found, finding{"repository", broken, err.Error(), ""})
	} else {
		found = append(found,
			finding{"repository", healthy, fmt.Sprintf("%s, project %s, base branch %s", repo.Root, repo.Project, base.Branch), ""},
			checkConfig(base, repo.Root))
		found = append(found, checkAgents(ctx, base.Config, repo.Root)...)
		found = append(found, checkEffort(base.Config)...)
		found = append(found, checkMerge(base.Config)...)
	}
	if err == nil {
		found = append(found, isolation(ctx, a, repo.Root, base.Config)...)
	}
	found = append(found, checkDisk(repo.Root), checkWritable(repo.Root))
	server, _ := examineServer(ctx, a, deep)
	return append(found, server...), nil
}

// checkGit looks for git, and for a version that can rebase without a checkout.
func checkGit(ctx context.Context) finding {
	version, err := git.Version(ctx)
	if err != nil {
		return finding{"git", broken, err.Error(), "install git 2.38 or newer"}
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 38) {
		return finding{"git", broken, version, "install git 2.38 or newer: rebasing without a checkout requires it"}
	}
	return finding{"git", healthy, version, ""}
}

// checkMerge says what a project needs whose changes are merged by pull requests: that is not to be seen from here.
// It is a warning and no failure: services with a gateway may well do that part.
func checkMerge(c *config.Project) []finding {
	if c.Merge.How != config.MergePull {
		return nil
	}
	return []finding{{
		"merge", warning, "changes are merged by pull requests, which a run on its own cannot open",
		"let the services work on it, with a gateway whose forge has the project in pull_requests",
	}}
}

// checkConfig says which configuration counts. One that cannot be read is found before.
// The one of the base branch counts, as it does for runs: a file that was written and not committed is told of, with
// the commands that commit it.
func checkConfig(base *local.Base, root string) finding {
	if _, err := os.Stat(filepath.Join(root, config.FileName)); base.Stored == nil && err == nil {
		return finding{
			"configuration", healthy,
			fmt.Sprintf("%s is not committed on %s: using the defaults; %s", config.FileName, base.Branch, ceilings(config.Default().Budget)),
			"git add " + config.FileName + ", and git commit",
		}
	}
	if base.Stored == nil {
		return finding{
			"configuration", healthy, fmt.Sprintf("no %s on %s: using the defaults; %s", config.FileName, base.Branch, ceilings(config.Default().Budget)),
			"run pfl-forge init to create one",
		}
	}
	detail := fmt.Sprintf("%s on %s: %s, %s to verify; %s", config.FileName, base.Branch,
		render.Count(len(base.Config.Recipes), "recipe"), render.Count(len(base.Config.Verify), "command"), ceilings(base.Config.Budget))
	return finding{"configuration", healthy, detail, ""}
}

// ceilings says what agents may cost, and that nothing bounds it where nothing does.
// Amounts are in US dollars; one of 0 is no bound, and is left out.
func ceilings(b config.Budget) string {
	var list []string
	for _, c := range []struct {
		usd float64
		of  string
	}{{b.IntentUSD, "an intent"}, {b.DayUSD, "a day"}, {b.ProjectUSD, "the project"}} {
		if c.usd > 0 {
			list = append(list, fmt.Sprintf("%s may cost $%.2f", c.of, c.usd))
		}
	}
	if len(list) == 0 {
		return "nothing bounds what agents cost (budget)"
	}
	return strings.Join(list, ", ")
}

// checkDisk says how much room the file system of a repository has.
// It counts the blocks that this user may use, and not those that are reserved for root.
func checkDisk(root string) finding {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return finding{"disk", warning, err.Error(), ""}
	}
	free := st.Bavail * uint64(st.Bsize)
	detail := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case free < leastDisk:
		return finding{"disk", broken, detail, "free some space: the disk is almost full"}
	case free < enoughDisk:
		return finding{"disk", warning, detail, "free some space: checkouts and the store will grow"}
	}
	return finding{"disk", healthy, detail, ""}
}

// checkFiles returns the problems of the files that a person wrote for pfl-forge.
// Each is a warning with its line, if it has one: drafts that are wrong are not taken in, and the rest goes on.
func checkFiles(ctx context.Context, t *target.Target) []finding {
	look, err := t.Repo.Look(t.Bus, false)
	if err != nil {
		return []finding{{"files", warning, err.Error(), ""}}
	}
	list, err := t.FileProblems(ctx, look)
	if err = errors.Join(err, look.Close()); err != nil {
		return []finding{{"files", warning, err.Error(), ""}}
	}
	var found []finding
	for i := range list {
		p := &list[i]
		where := p.Path
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		found = append(found, finding{"files", warning, strings.TrimSpace(where + " " + p.Field + " " + p.Reason), p.Hint})
	}
	return found
}

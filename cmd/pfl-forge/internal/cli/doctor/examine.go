package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/server"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
)

const (
	enoughDisk = 1 << 30   // bytes below which there is a warning
	leastDisk  = 100 << 20 // bytes below which nothing works for long
)

// examine makes all checks, in the order in which they build on each other. It also returns
// the replicas that work for an organisation.
//
// Where there is no repository the checks after that are left out, as all of them need
// one. A configuration that cannot be read leaves out those that read it, and no
// others. Of an organisation this machine is not looked at: the work is done elsewhere.
func examine(ctx context.Context, a *kit.App, deep bool) ([]diagnosis.Finding, []server.Replica) {
	if a.Remote() {
		return server.Examine(ctx, a, deep)
	}
	found := []diagnosis.Finding{checkGit(ctx)}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return append(found, diagnosis.New("repository", diagnosis.Broken, err.Error(), "")), nil
	}
	base, err := repo.Base(ctx)
	if err != nil {
		found = append(found, diagnosis.New("repository", diagnosis.Broken, err.Error(), ""))
	} else {
		found = append(found,
			diagnosis.New("repository", diagnosis.Healthy, fmt.Sprintf("%s, project %s, base branch %s", repo.Root, repo.Project, base.Branch), ""),
			checkConfig(base, repo.Root))
		found = append(found, checkAgents(ctx, base.Config, repo.Root)...)
		found = append(found, checkEffort(base.Config)...)
		found = append(found, checkMerge(base.Config)...)
	}
	if err == nil {
		found = append(found, isolation(ctx, a, repo.Root, base.Config)...)
	}
	found = append(found, checkDisk(repo.Root), checkWritable(repo.Root))
	more, _ := server.Examine(ctx, a, deep)
	return append(found, more...), nil
}

// checkGit looks for git, and for a version that can rebase without a checkout.
func checkGit(ctx context.Context) diagnosis.Finding {
	version, err := git.Version(ctx)
	if err != nil {
		return diagnosis.New("git", diagnosis.Broken, err.Error(), "install git 2.38 or newer")
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 38) {
		return diagnosis.New("git", diagnosis.Broken, version, "install git 2.38 or newer: rebasing without a checkout requires it")
	}
	return diagnosis.New("git", diagnosis.Healthy, version, "")
}

// checkMerge says what a project needs whose changes are merged by pull requests: that is not to be
// seen from here. It is a warning and no failure: services with a gateway may well do that part.
func checkMerge(c *config.Project) []diagnosis.Finding {
	if c.Merge.How != config.MergePull {
		return nil
	}
	return []diagnosis.Finding{diagnosis.New(
		"merge", diagnosis.Warning, "changes are merged by pull requests, which a run on its own cannot open",
		"let the services work on it, with a gateway whose forge has the project in pull_requests",
	)}
}

// checkConfig says which configuration counts. One that cannot be read is found
// before. The one of the base branch counts, as it does for runs: a file that
// was written and not committed is told of, with the commands that commit it.
func checkConfig(base *local.Base, root string) diagnosis.Finding {
	if _, err := os.Stat(filepath.Join(root, config.FileName)); base.Stored == nil && err == nil {
		return diagnosis.New(
			"configuration", diagnosis.Healthy,
			fmt.Sprintf("%s is not committed on %s: using the defaults; %s", config.FileName, base.Branch, ceilings(config.Default().Budget)),
			"git add "+config.FileName+", and git commit",
		)
	}
	if base.Stored == nil {
		return diagnosis.New(
			"configuration", diagnosis.Healthy, fmt.Sprintf("no %s on %s: using the defaults; %s", config.FileName, base.Branch, ceilings(config.Default().Budget)),
			"run pfl-forge init to create one",
		)
	}
	detail := fmt.Sprintf("%s on %s: %s, %s to verify; %s", config.FileName, base.Branch,
		render.Count(len(base.Config.Recipes), "recipe"), render.Count(len(base.Config.Verify), "command"), ceilings(base.Config.Budget))
	return diagnosis.New("configuration", diagnosis.Healthy, detail, "")
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
func checkDisk(root string) diagnosis.Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return diagnosis.New("disk", diagnosis.Warning, err.Error(), "")
	}
	free := st.Bavail * uint64(st.Bsize)
	detail := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case free < leastDisk:
		return diagnosis.New("disk", diagnosis.Broken, detail, "free some space: the disk is almost full")
	case free < enoughDisk:
		return diagnosis.New("disk", diagnosis.Warning, detail, "free some space: checkouts and the store will grow")
	}
	return diagnosis.New("disk", diagnosis.Healthy, detail, "")
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/repository/backends"
)

const (
	enoughDisk = 1 << 30   // bytes below which there is a warning
	leastDisk  = 100 << 20 // bytes below which nothing works for long
	shownDead  = 5         // dead letters that are shown one by one
)

// examine makes all checks, in the order in which they build on each other.
func (a *app) examine(ctx context.Context) []finding {
	if a.remote() {
		return a.examineServer(ctx)
	}
	found := []finding{checkGit(ctx)}
	repo, err := local.OpenRepository(ctx, a.dir)
	if err != nil {
		return append(found, finding{"repository", broken, err.Error(), ""})
	}
	base, err := repo.Base(ctx)
	if err != nil {
		found = append(found, finding{"repository", broken, err.Error(), ""})
	} else {
		found = append(found,
			finding{"repository", healthy, fmt.Sprintf("%s, project %s, base branch %s", repo.Root, repo.Project, base.Branch), ""},
			a.checkConfig(base))
		found = append(found, checkAgents(ctx, base.Config)...)
	}
	if err == nil {
		found = append(found, a.isolation(ctx, base.Config)...)
	}
	found = append(found, checkDisk(repo.Root), checkWritable(repo.Root))
	found = append(found, checkFiles(repo)...)
	return append(found, a.examineServer(ctx)...)
}

func checkGit(ctx context.Context) finding {
	version, err := git.Version(ctx)
	if err != nil {
		return finding{"git", broken, err.Error(), "install git 2.38 or newer"}
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 38) {
		return finding{"git", broken, version, "install git 2.38 or newer: rebasing without a checkout needs it"}
	}
	return finding{"git", healthy, version, ""}
}

func (a *app) checkConfig(base *local.Base) finding {
	if base.Stored == nil {
		return finding{
			"configuration", healthy, fmt.Sprintf("no %s on %s: the defaults hold", config.FileName, base.Branch),
			"pfl-forge init writes one to start from",
		}
	}
	detail := fmt.Sprintf("%s on %s: %s, %s to verify", config.FileName, base.Branch,
		render.Count(len(base.Config.Recipes), "recipe"), render.Count(len(base.Config.Verify), "command"))
	return finding{"configuration", healthy, detail, ""}
}

// checkAgents looks for the programs of all agents that the configuration names.
func checkAgents(ctx context.Context, cfg *config.Project) []finding {
	dir, err := os.MkdirTemp("", "pfl-forge-doctor-")
	if err != nil {
		return []finding{{"agents", warning, err.Error(), ""}}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var found []finding
	for _, c := range backends.CheckAll(ctx, cfg, dir) {
		f := finding{c.Agent, healthy, c.Version, ""}
		switch {
		case c.Problem != nil:
			f.Health, f.Detail = warning, strings.TrimSpace(c.Version+" "+c.Problem.Message)
			f.Hint = "recipes can be used without it"
		case c.Version == "":
			f.Detail = "its program is there"
		}
		found = append(found, f)
	}
	return found
}

func checkDisk(root string) finding {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return finding{"disk", warning, err.Error(), ""}
	}
	free := st.Bavail * uint64(st.Bsize)
	detail := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case free < leastDisk:
		return finding{"disk", broken, detail, "make room: nothing can be stored soon"}
	case free < enoughDisk:
		return finding{"disk", warning, detail, "make room: checkouts and the store grow"}
	}
	return finding{"disk", healthy, detail, ""}
}

func checkFiles(repo *local.Repository) []finding {
	list, err := repo.Problems()
	if err != nil {
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

// examineServer looks at the server, whosever it is.
func (a *app) examineServer(ctx context.Context) []finding {
	t, err := a.reader(ctx)
	if errors.Is(err, bus.ErrNoRunner) {
		return []finding{{"server", healthy, "connected", ""}, {"runner", broken, err.Error(), "nothing can be asked for before"}}
	}
	if err != nil {
		return []finding{{"server", broken, err.Error(), ""}}
	}
	defer t.close()
	if t.bus == nil {
		return []finding{{"server", healthy, "not used yet", ""}}
	}
	detail := "starts when it is needed"
	switch {
	case t.remote:
		detail = "connected, project " + string(t.project)
	case !t.owner:
		pid, since := t.session.Holder()
		detail = fmt.Sprintf("a run goes on in process %d since %s", pid, since.Local().Format(time.DateTime))
	}
	found := []finding{{"server", healthy, detail, ""}}
	if err := t.healthy(ctx); err != nil {
		found[0] = finding{"server", broken, err.Error(), ""}
	}
	return append(found, t.checkDead(ctx)...)
}

func (t *target) checkDead(ctx context.Context) []finding {
	dead, err := t.dead(ctx)
	if err != nil {
		return []finding{{"dead letters", warning, err.Error(), ""}}
	}
	if len(dead) == 0 {
		return []finding{{"dead letters", healthy, "none", ""}}
	}
	found := []finding{{
		"dead letters", warning, render.Count(len(dead), "message") + " that nobody could handle",
		"they change nothing; they are forgotten after 90 days",
	}}
	for i := range dead[max(0, len(dead)-shownDead):] {
		d := &dead[max(0, len(dead)-shownDead)+i]
		found = append(found, finding{"dead letter", warning, fmt.Sprintf("%s %s/%d %s: %s",
			d.At.Local().Format(time.DateTime), d.Stream, d.Seq, d.Subject, d.Reason), ""})
	}
	return found
}

// healthy says what is wrong with the server.
func (t *target) healthy(ctx context.Context) error {
	if t.session != nil {
		return t.session.Healthy(ctx)
	}
	if t.bus == nil {
		return errors.New("there is no connection")
	}
	return t.bus.Ping(ctx)
}

package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// asModel runs a command line as a model would, on a machine with these caches
// and private paths, and returns what it prints.
func asModel(t *testing.T, path, state string, env, private []string, line string) string {
	t.Helper()
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	owner := process.NewOwner(state)
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: owner, Agents: []agent.Agent{&obedient{owner: owner, line: line}}, Log: slog.New(slog.DiscardHandler),
		Env: env, Private: private,
	}, []jobs.Source{{Project: repotest.Project, Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out agent.Outcome
	res := do(t, set, func(ctx context.Context, j *jobs.Job) (err error) {
		j.Command.Intent.Agent = config.AgentClaude
		out, err = j.Run(ctx, agent.Call{Role: agent.RoleImplement})
		return err
	})
	if f := res.Failure(); f != nil {
		t.Fatal(f)
	}
	return out.Text
}

// secrets writes a file into each directory, and returns a command line that
// shows those that it can read.
func secrets(t *testing.T, dirs ...string) (line string) {
	t.Helper()
	for _, dir := range dirs {
		path := filepath.Join(dir, "secret")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("seen "+path+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		line += "cat " + path + " 2>/dev/null; echo spoiled 2>/dev/null >>" + path + "; "
	}
	return line + "echo looked"
}

// TestNothingGrantsWhatIsOurs: a configuration that grants the repository, what
// is above it, the state of the service or what the machine's user keeps for
// themselves, by its path or by a link, grants nothing of that.
func TestNothingGrantsWhatIsOurs(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	state, private, above := t.TempDir(), t.TempDir(), filepath.Dir(r.Dir)
	line := secrets(t, filepath.Join(r.Dir, ".git"), filepath.Join(r.Dir, ".forge"), filepath.Join(state, "deep"), private)
	links := t.TempDir()
	var paths []string
	for name, dir := range map[string]string{
		"git": filepath.Join(r.Dir, ".git"), "forge": filepath.Join(r.Dir, ".forge"), "state": state, "deep": filepath.Join(state, "deep"), "private": private,
		"repository": r.Dir, "above": above,
	} {
		link := filepath.Join(links, name)
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		if paths = append(paths, link); !strings.HasPrefix(dir, above) { // where test repositories are, each sandbox has a place of its own
			paths = append(paths, dir)
		}
	}
	r.Commit("grants", map[string]string{"pfl-forge.yaml": "policy: {sandbox_write: [" + strings.Join(paths, ", ") + "]}\n"})
	if got := strings.TrimSpace(asModel(t, r.Dir, state, nil, []string{private}, line)); got != "looked" {
		t.Errorf("a model reads\n%s", got)
	}
	if data, err := os.ReadFile(filepath.Join(private, "secret")); err != nil || strings.Contains(string(data), "spoiled") {
		t.Errorf("it wrote %q, %v", data, err)
	}
}

// TestModelsReadGoModules: of the caches that the environment names, a model reads the
// Go modules, which are laid out for GOPROXY, and nothing else; and it writes to none.
func TestModelsReadGoModules(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "policy: {sandbox: require}\n"})
	modules, build := t.TempDir(), t.TempDir()
	download := filepath.Join(modules, "cache", "download")
	line := "p=${GOPROXY#file://}; p=${p%%,*}; echo proxy $p; " + secrets(t, download, modules, filepath.Join(modules, "vcs"), build)
	got := asModel(t, r.Dir, t.TempDir(), []string{"GOMODCACHE=" + modules, "GOCACHE=" + build}, nil, line)
	want := "proxy " + download + "\nseen " + filepath.Join(download, "secret") + "\nlooked"
	if strings.TrimSpace(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, dir := range []string{download, modules, build} {
		if data, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || strings.Contains(string(data), "spoiled") {
			t.Errorf("it wrote %q, %v", data, err)
		}
	}
}

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/testbuild"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// The titles that the rules of the version after ours give.
const newerTitle = " (by newer rules)"

// goBuild runs go build in a folder, as for what is shipped.
func goBuild(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	testbuild.Shipped(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %v: %v\n%s", args, err, tail(out, 3000))
	}
}

// top returns the root of this repository.
func top(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// buildBefore returns a folder with the runner of the commit that E2E_BEFORE
// names, by default the one before.
func buildBefore(t *testing.T) string {
	t.Helper()
	dir := testdir.New(t)
	source, commit := filepath.Join(dir, "source"), cmp.Or(os.Getenv("E2E_BEFORE"), "HEAD~1")
	id, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--verify", commit+"^{commit}").Output()
	if err != nil {
		t.Fatalf("%s: %v", commit, err)
	}
	for _, args := range [][]string{
		{"clone", "-q", "--shared", "--no-checkout", top(t), source}, {"-C", source, "checkout", "-q", strings.TrimSpace(string(id))},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	goBuild(t, filepath.Join(source, "services", "runner"), "-o", filepath.Join(dir, "runner"), "./cmd/runner")
	return dir
}

// buildNext returns a folder with the programs of a version whose rules are one
// newer than ours, and decide otherwise: they change the title of what is
// submitted. They are in force a second after the last older runner is gone.
func buildNext(t *testing.T) string {
	t.Helper()
	dir, root := testdir.New(t), top(t)
	replace := map[string]string{}
	for _, change := range []struct{ file, place, becomes string }{
		{"internal/rules/rules.go", `Newest Version = \d+`, fmt.Sprintf("Newest Version = %d", rules.Newest+1)},
		{"services/runner/rules.go", `settleRules = 10 \* time\.Minute`, "settleRules = time.Second"},
		{
			"services/runner/flow/person.go", `in := m\.Intent\n\tif in\.CreatedAt`,
			fmt.Sprintf("in := m.Intent\n\tif s.DecidedBy > %d {\n\t\tin.Title += %q\n\t}\n\tif in.CreatedAt", rules.Newest, newerTitle),
		},
	} {
		path := filepath.Join(root, filepath.FromSlash(change.file))
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		place := regexp.MustCompile(change.place)
		if n := len(place.FindAll(source, -1)); n != 1 {
			t.Fatalf("%s has the place to change %d times; want once", change.file, n)
		}
		changed := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		write(t, changed, place.ReplaceAllLiteralString(string(source), change.becomes))
		replace[path] = changed
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	write(t, name, string(overlay))
	goBuild(t, filepath.Join(root, "services", "runner"), "-overlay", name, "-o", filepath.Join(dir, "runner"), "./cmd/runner")
	goBuild(t, filepath.Join(root, "cmd", "pfl-forge"), "-overlay", name, "-o", filepath.Join(dir, "pfl-forge"), ".")
	return dir
}

// versions is a cluster whose runners are of different versions.
type versions struct {
	*cluster
	ours *process
	made int
}

// newVersions starts a cluster with a runner of ours.
func newVersions(t *testing.T) *versions {
	t.Helper()
	files := maps.Clone(appending)
	files["pfl-forge.yaml"] += "policy: {approvals: {not_requester: false}}\n"
	v := &versions{cluster: newCluster(t, files)}
	v.ours = v.procs[slices.IndexFunc(v.procs, func(p *process) bool { return p.name == "runner" })]
	return v
}

// other starts a runner of another version.
func (v *versions) other(dir string) *process {
	v.t.Helper()
	log, err := os.Create(filepath.Join(v.dir, fmt.Sprintf("%d-runner.log", len(v.procs))))
	if err != nil {
		v.t.Fatal(err)
	}
	p := &process{name: filepath.Join(dir, "runner"), log: log, args: slices.Clone(v.ours.args)}
	p.args[slices.Index(p.args, "runner-1")] = "runner-2"
	v.procs = append(v.procs, p)
	v.start(p)
	return p
}

// create asks for an intent.
func (v *versions) create(more ...string) (id string) {
	v.t.Helper()
	v.made++
	id = fmt.Sprintf("version-%02d", v.made)
	line := fmt.Sprintf("line-%02d", v.made)
	args := []string{"create", id, "--title", "Append " + line, "--body", "Please.", "--recipe", "append", "--with", "LINE=" + line}
	v.says(v.forge(append(args, more...)...), 0)
	return id
}

// says fails the test unless a command ended so.
func (v *versions) says(got result, code int) {
	v.t.Helper()
	if got.code != code {
		v.t.Fatalf("exit code %d, want %d\n%s%s", got.code, code, got.stdout, got.stderr)
	}
}

// decidedBy returns by which versions the records of an intent were decided, as
// a program in a folder reads them; none if it cannot.
func (v *versions) decidedBy(dir, id string) (list []int) {
	v.t.Helper()
	got := v.forgeOf(dir, "replay", id, "--output", "json")
	var replay struct{ Records []struct{ Version int } }
	if got.code != 0 || json.Unmarshal([]byte(got.stdout), &replay) != nil {
		return nil
	}
	for _, r := range replay.Records {
		list = append(list, r.Version)
	}
	return list
}

// allDone waits until every intent is done.
func (v *versions) allDone() {
	v.t.Helper()
	wait.Moving(v.t, "all are done", func() bool { return v.done() == v.made }, func() int { return v.done() })
}

// intact fails the test if a runner found a journal that its rules do not lead to.
func (v *versions) intact() {
	v.t.Helper()
	for _, p := range v.procs {
		content, err := os.ReadFile(p.log.Name())
		if err != nil {
			v.t.Fatal(err)
		}
		for _, bad := range []string{"nothing is decided on this any more", "the store is damaged", "panic:"} {
			if strings.Contains(string(content), bad) {
				v.t.Errorf("%s says: %s", p.log.Name(), bad)
			}
		}
	}
}

// TestCommitBefore has the runner of the commit before and ours decide side by side, each
// of them killed again and again, so that both go on from what the other has decided;
// then the one before alone, as after a rollback, and ours alone, as after an upgrade.
func TestCommitBefore(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	v := newVersions(t)
	runners := []*process{v.ours, v.other(buildBefore(t))}
	rng := rand.New(rand.NewPCG(8, 6))
	// The installation has decisions by the first version, so that the newest is waited for.
	for _, p := range runners {
		p.kill()
	}
	args := v.ours.args
	v.ours.args = append(slices.Clip(args), "--rules", "1")
	v.start(v.ours)
	v.create()
	v.allDone()
	v.ours.kill()
	v.ours.args = args
	for _, p := range runners {
		v.start(p)
	}
	for range 8 {
		v.create()
	}
	for turn := 0; v.done() < v.made && turn < 40; turn++ {
		p := runners[turn%2]
		p.kill()
		wait.For(t, wait.Moment(rng, 50*time.Millisecond, 700*time.Millisecond)) // the other one is alone
		v.start(p)
		wait.For(t, wait.Moment(rng, 50*time.Millisecond, 700*time.Millisecond))
	}
	for i := range runners { // first ours is away, then the one before
		runners[i].kill()
		v.create()
		v.create()
		v.allDone()
		v.start(runners[i])
	}
	v.intact()
	for n := 1; n <= v.made; n++ {
		id := fmt.Sprintf("version-%02d", n)
		if list := v.decidedBy(bin, id); len(list) == 0 || slices.Max(list) != int(rules.First) {
			t.Errorf("%s was decided by versions %v beside a runner that may know the first alone", id, list)
		}
	}
}

// TestNewerRules upgrades from our rules to newer ones, which decide otherwise:
// side by side all goes by what both know. When ours are gone the newer ones
// are in force, also for an intent that has begun before. After that, ours
// leave alone what those decided, and all of it goes on when they are back.
func TestNewerRules(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	next := buildNext(t)
	v := newVersions(t)
	before := v.create()
	begun := v.create("--risk", "high") // waits for a person
	v.allDoneBut(1)

	newer := v.other(next)
	beside := v.create()
	v.allDoneBut(1)
	v.ours.kill()
	v.start(v.ours)
	newer.kill() // a rollback, while both are there: nothing is lost by it
	v.create()
	v.allDoneBut(1)
	for _, id := range []string{before, beside} {
		if list := v.decidedBy(bin, id); len(list) == 0 || slices.Max(list) > int(rules.Newest) {
			t.Errorf("%s was decided by versions %v, with a runner there that knows no newer than %d", id, list, rules.Newest)
		}
	}

	v.start(newer)
	v.ours.kill()
	var after string
	wait.Until(t, "the newer rules are in force", func() bool {
		after = v.create()
		list := v.decidedBy(next, after)
		return len(list) > 0 && list[0] > int(rules.Newest)
	})
	v.says(v.forge("approve", begun), 0)
	v.allDone()
	list := v.decidedBy(next, begun)
	if len(list) == 0 || list[0] > int(rules.Newest) || list[len(list)-1] != int(rules.Newest)+1 || !slices.IsSorted(list) {
		t.Errorf("%s, which goes from our rules to newer ones, was decided by versions %v", begun, list)
	}
	log := v.clone().git("log", "--format=%s", "main")
	if n := strings.Count(log, newerTitle); n == 0 || strings.Contains(log, "line-02"+newerTitle) {
		t.Errorf("what was submitted under newer rules has their title, and nothing else; the log is\n%s", log)
	}

	// A rollback when newer rules have been in force: nothing is decided wrongly.
	newer.kill()
	v.start(v.ours)
	v.create()
	wait.Until(t, "ours leaves alone what it does not understand", func() bool {
		content, err := os.ReadFile(v.ours.log.Name())
		return err == nil && strings.Contains(string(content), "a newer version decided on this")
	})
	if got := v.forge("show", after); got.code == 0 {
		t.Errorf("our programs show %s, which newer rules have decided on:\n%s", after, got.stdout)
	}
	v.ours.kill() // what it took comes again within a minute, and half of that to itself
	v.start(newer)
	v.allDone()
	v.intact()
}

// allDoneBut waits until all intents are done but some, which wait for a person.
func (v *versions) allDoneBut(n int) {
	v.t.Helper()
	v.made -= n
	v.allDone()
	v.made += n
}

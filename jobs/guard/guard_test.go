package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// base is a repository whose instructions and checks are spread over its files.
var base = map[string]string{
	"CLAUDE.md": "Read @docs/rules.md, @../outside.md and @/etc/rules.\nWrite to @team. See @docs/all.md.\n", "docs/rules.md": "More in @style/go.md\n",
	"docs/style/go.md": "tabs", "docs/all.md": "@rules.md @all.md", "docs/free.md": "anything", "sub/GEMINI.md": "`@./deep.md`", "sub/deep.md": "x",
	"opencode.json": `{"instructions": ["guides/*.md", "one.md"], "prompt": "{file:./prompts/p.txt}"}`, "guides/a.md": "a", "one.md": "1", "prompts/p.txt": "p",
	"tools/agents/settings.json": "{}", "tools/commands/x.md": "x", "ci/check.sh": "exit 0", "ci/data.txt": "1", "web/Makefile": "all:",
	"web/package.json": `{"scripts": {"test": "jest"}, "version": "1"}`,
	"real/rules/a.md":  "a", "notes.txt": "n", "lib/run.py": "pass", "elsewhere/x": "x",
}

// links are those of base.
var links = map[string]string{
	".claude": "tools/agents", "tools/agents/commands": "../commands", "AGENTS.md": "sub/team.md", "rules": "real", "sub/up": "../elsewhere",
}

func repository(t *testing.T) (gittest.Repo, *Guard) {
	t.Helper()
	r := gittest.New(t, base)
	for at, to := range links {
		if err := os.Symlink(to, filepath.Join(r.Dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	r.Git("add", "-A")
	r.Git("commit", "-qm", "links")
	s, err := store.OpenLocal(t.Context(), store.LocalConfig{Path: r.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return r, New(s.Database)
}

// TestChangesThatOnlyAPersonMayApprove changes one file of the repository at a time.
func TestChangesThatOnlyAPersonMayApprove(t *testing.T) {
	r, g := repository(t)
	p := config.Default()
	p.Policy.ProtectedPaths = append(p.Policy.ProtectedPaths, "rules/rules/*.md")
	p.Verify = []string{
		"cd web && make -j2 all", "test -f notes.txt && [ -f docs/free.md ]", "! grep -c run ./elsewhere/x", "bash ci/check.sh --input ci/data.txt",
		"echo 'no notes.txt'; env X=1 python3 lib/run.py || (sh -c './hidden.sh now')",
	}
	p.Checks = map[string]config.Check{"style": {Command: "sh ci/style.sh --max 3"}}
	p.WorktreeSetup = []string{"npm --prefix=web ci", "if"}
	own := []forge.Check{{Criterion: 1, Name: "style"}, {Criterion: 2, Command: "test -e RESULT.txt && bash ci/own.sh"}}
	for file, want := range map[string]string{
		"docs/free.md": "", "notes.txt": "", "team.md": "", "ci/data.txt": "", "elsewhere/x": "", "tools/x": "",
		"docs/rules.md": "CLAUDE.md imports it", "docs/style/go.md": "docs/rules.md imports it", "docs/all.md": "CLAUDE.md imports it",
		"DOCS/Rules.md": "CLAUDE.md imports it",
		"team":          "CLAUDE.md imports it", // an import that is not there yet
		"sub/deep.md":   "sub/GEMINI.md imports it", "guides/b.md": "opencode.json imports it", "one.md": "opencode.json imports it",
		"prompts/p.txt":              "opencode.json imports it",
		"tools/agents/settings.json": ".claude links there", "tools/agents/new/x": ".claude links there", "tools/agents": ".claude links there",
		"tools/commands/x.md": "tools/agents/commands links there", "sub/team.md": "AGENTS.md links there", "real/rules/b.md": "rules/rules/*.md leads there",
		"tools":       ".claude links there", // a link in the place of a directory above
		"docs":        "CLAUDE.md imports it",
		"ci/check.sh": "verify runs it", "lib/run.py": "verify runs it", "hidden.sh": "verify runs it", "web/GNUmakefile": "",
		"if":          "worktree_setup runs it", // cannot be parsed
		"ci/style.sh": "a check runs it", "ci/own.sh": "a criterion runs it", "RESULT.txt": "",
	} {
		t.Run(strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
			got, err := g.Look(t.Context(), Change{Base: r.Head("HEAD"), Head: r.Head("HEAD"), Files: []string{file}, Checks: own}, p)
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			if want != "" {
				reasons = []string{file + " (" + want + ")"}
			}
			if diff := cmp.Diff(reasons, got.Reasons); diff != "" {
				t.Error(diff)
			}
		})
	}
	files := []string{"ci/check.sh", "ci/data.txt", "web/Makefile", "web/package.json"}
	got, err := g.Look(t.Context(), Change{Base: r.Head("HEAD"), Head: r.Head("HEAD"), Files: files}, p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ci/check.sh", "web/Makefile", "web/package.json"}, got.Run); diff != "" {
		t.Error(diff)
	}
}

// TestKeysOfJSON has changes of package.json: of its scripts a person approves every change.
func TestKeysOfJSON(t *testing.T) {
	r, g := repository(t)
	from := r.Head("HEAD")
	for name, test := range map[string]struct {
		text    string
		guarded bool
	}{
		"version":       {`{"version": "2", "scripts": {"test":   "jest"}}`, false},
		"scripts":       {`{"version": "1", "scripts": {"test": "true"}}`, true},
		"one more":      {`{"version": "1", "scripts": {"test": "jest", "postinstall": "x"}}`, true},
		"no scripts":    {`{"version": "1"}`, true},
		"twice":         {`{"scripts": {"test": "true"}, "scripts": {"test": "jest"}}`, true},
		"spelled":       {`{"scripts": {"test": "jest"}, "scr\u0069pts": {"test": "true"}}`, true},
		"not an object": {`[1]`, true},
		"no JSON":       {`{"scripts"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			head := r.Commit("a change", map[string]string{"web/package.json": test.text})
			got, err := g.Look(t.Context(), Change{Base: from, Head: head, Files: []string{"web/package.json"}}, config.Default())
			if err != nil || (len(got.Reasons) > 0) != test.guarded {
				t.Errorf("%q, %v; want guarded %v", got.Reasons, err, test.guarded)
			}
		})
	}
}

// TestLinksThatLeadNowhere has links in circles and out of the repository.
func TestLinksThatLeadNowhere(t *testing.T) {
	r, g := repository(t)
	for at, to := range map[string]string{".codex": ".gemini", ".gemini": ".codex", ".cursor": "/etc", ".windsurf": "../../up", ".agents": "."} {
		if err := os.Symlink(to, filepath.Join(r.Dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	r.Git("add", "-A")
	r.Git("commit", "-qm", "circles")
	head := r.Head("HEAD")
	got, err := g.Look(t.Context(), Change{Base: head, Head: head, Files: []string{"notes.txt", "docs/rules.md"}}, config.Default())
	if diff := cmp.Diff([]string{"docs/rules.md (CLAUDE.md imports it)"}, got.Reasons); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := g.Look(t.Context(), Change{Base: git.OID(strings.Repeat("1", 40)), Head: head, Files: []string{"x"}}, config.Default()); err == nil {
		t.Error("a commit that is not there is no error")
	}
}

// TestNextCommit has the places follow the base branch.
func TestNextCommit(t *testing.T) {
	r, g := repository(t)
	look := func(want ...string) {
		t.Helper()
		head := r.Head("HEAD")
		got, err := g.Look(t.Context(), Change{Base: head, Head: head, Files: []string{"docs/free.md", "docs/rules.md"}}, config.Default())
		if diff := cmp.Diff(want, got.Reasons); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	look("docs/rules.md (CLAUDE.md imports it)")
	r.Commit("free", map[string]string{"CLAUDE.md": "@docs/free.md"})
	look("docs/free.md (CLAUDE.md imports it)")
	r.Commit("none", map[string]string{"CLAUDE.md": ""})
	look()
}

// TestConfigurationIsGuarded: a project's own list of protected paths cannot
// leave the configuration out.
func TestConfigurationIsGuarded(t *testing.T) {
	r, g := repository(t)
	head := r.Head("HEAD")
	p := config.Default()
	p.Policy.ProtectedPaths = []string{"deploy/"}
	files := []string{config.FileName, "PFL-Forge.yaml", "notes.txt"}
	got, err := g.Look(t.Context(), Change{Base: head, Head: head, Files: files}, p)
	const why = " (it decides what is verified, and who approves)"
	if diff := cmp.Diff([]string{config.FileName + why, "PFL-Forge.yaml" + why}, got.Reasons); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func FuzzCommandFiles(f *testing.F) {
	f.Add("cd web && make -C x all; bash -c './a.sh $(cat b)' <<EOF\nx\nEOF")
	f.Fuzz(func(t *testing.T, line string) {
		for file := range commandFiles("verify", []string{line}) {
			if file == "" || strings.HasPrefix(file, "/") || strings.HasPrefix(file, "../") || strings.Contains(file, "/../") {
				t.Errorf("%q names %q", line, file)
			}
		}
	})
}

// The file that a check runs is found, also behind a program that runs another
// one; what is only read is not.
func TestWrappedCommands(t *testing.T) {
	for _, line := range []string{
		"timeout 600 scripts/coverage 80", "env CI=1 scripts/coverage 80", "nice scripts/coverage", "exec scripts/coverage", "nice -n 5 sh scripts/coverage",
		"time scripts/coverage", "xargs -n1 scripts/coverage <list", "command scripts/coverage", "GOFLAGS=-mod=vendor scripts/coverage",
		"test -n \"$(scripts/coverage)\"", "cat list | while read f; do scripts/coverage $f; done", "! scripts/coverage", "unheard-of scripts/coverage",
		"git -c core.hooksPath=scripts/coverage commit", "awk -f scripts/coverage", "go run scripts/coverage", "sh <scripts/coverage",
		"timeout 5 sh -x < scripts/coverage",
		"cat scripts/coverage | sh", "cat scripts/coverage | sed s/a/b/ | env A=1 bash -s", "echo scripts/coverage | xargs sh", "sh -c \"$(cat scripts/coverage)\"",
		"bash <(cat scripts/coverage)", "eval \"$(cat scripts/coverage)\"", "cat <scripts/coverage | sh", ". /dev/stdin <scripts/coverage",
	} {
		if !commandFiles("a check", []string{line}).holds("scripts/coverage") {
			t.Errorf("not found: %s", line)
		}
	}
	for _, line := range []string{
		"cat scripts/coverage", "timeout 5 grep x scripts/coverage", "test -e scripts/coverage", "cat scripts/coverage | grep x",
		"cat scripts/coverage | sh x.sh", "ci/x scripts/coverage", "time",
	} {
		if commandFiles("a check", []string{line}).holds("scripts/coverage") {
			t.Errorf("only read: %s", line)
		}
	}
}

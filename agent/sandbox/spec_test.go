package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []Mount
		want []Mount
	}{
		{
			"outer before inner",
			[]Mount{{Path: "/a/b", Kind: Writable}, {Path: "/a", Kind: ReadOnly}},
			[]Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a/b", Kind: Writable}},
		},
		{
			"a name is no directory",
			[]Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a-b", Kind: ReadOnly}},
			[]Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a-b", Kind: ReadOnly}},
		},
		{"what is there already", []Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a/b/c", Kind: ReadOnly}}, []Mount{{Path: "/a", Kind: ReadOnly}}},
		{"the stronger of two", []Mount{{Path: "/a", Kind: Writable}, {Path: "/a", Kind: ReadOnly}}, []Mount{{Path: "/a", Kind: Writable}}},
		{
			"hidden wins",
			[]Mount{{Path: "/a", Kind: Hidden}, {Path: "/", Kind: ReadOnly}, {Path: "/a", Kind: Writable}},
			[]Mount{{Path: "/", Kind: ReadOnly}, {Path: "/a", Kind: Hidden}},
		},
		{"nothing to hide", []Mount{{Path: "/a", Kind: Hidden}}, nil},
		{
			"shown in what is hidden",
			[]Mount{{Path: "/a/b/c", Kind: ReadOnly}, {Path: "/a/b", Kind: Hidden}, {Path: "/a", Kind: ReadOnly}},
			[]Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a/b", Kind: Hidden}, {Path: "/a/b/c", Kind: ReadOnly}},
		},
		{
			"in something else's place",
			[]Mount{{Path: "/tmp", Kind: Writable, To: "/x"}, {Path: "/tmp/a", Kind: Writable}},
			[]Mount{{Path: "/tmp", Kind: Writable, To: "/x"}, {Path: "/tmp/a", Kind: Writable}},
		},
		{"a link that is there", []Mount{{Path: "/a", Kind: ReadOnly}, {Path: "/a/l", Kind: Link, To: "b"}}, []Mount{{Path: "/a", Kind: ReadOnly}}},
	} {
		s := Spec{Mounts: tt.in}
		if diff := cmp.Diff(tt.want, s.mountPlan()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestPlanShowsWhatIsAskedFor compares a plan with the mounts themselves: the deepest
// one around a path decides.
func TestPlanShowsWhatIsAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a-b"}), 1, 4), func(names []string) string { return "/" + strings.Join(names, "/") })
		var s Spec
		for _, at := range rapid.SliceOfN(path, 0, 8).Draw(t, "mounts") {
			s.Mounts = append(s.Mounts, Mount{Path: at, Kind: rapid.SampledFrom([]Kind{ReadOnly, Writable, Hidden}).Draw(t, "kind")})
		}
		at := path.Draw(t, "path")
		want := ""
		for _, m := range s.Mounts {
			if within(m.Path, at) && (len(m.Path) > len(want) || want == "") {
				want = m.Path
			}
		}
		kind := Hidden // there is nothing
		for _, m := range s.Mounts {
			if m.Path == want && (kind == Hidden && !anyOf(s.Mounts, want, Hidden) || m.Kind.rank() > kind.rank()) {
				kind = m.Kind
			}
		}
		got, ok := innermostMount(s.mountPlan(), at)
		if !ok {
			got.Kind = Hidden
		}
		if got.Kind != kind {
			t.Fatalf("%s is %s, want %s in %v", at, got.Kind, kind, s.Mounts)
		}
	})
}

func anyOf(list []Mount, path string, kind Kind) bool {
	return slices.ContainsFunc(list, func(m Mount) bool { return m.Path == path && m.Kind == kind })
}

func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestPathFollowsLinks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mkdir(t, root, "actual", "deep")
	symlink(t, "actual", filepath.Join(root, "one"))
	symlink(t, filepath.Join(root, "one"), filepath.Join(root, "two"))
	want := []Mount{
		{Path: filepath.Join(root, "actual", "deep"), Kind: Writable},
		{Path: filepath.Join(root, "two"), Kind: Link, To: filepath.Join(root, "one")},
		{Path: filepath.Join(root, "one"), Kind: Link, To: "actual"},
	}
	if diff := cmp.Diff(want, Path(filepath.Join(root, "two", "deep"), Writable)); diff != "" {
		t.Error(diff)
	}
	symlink(t, "loop", filepath.Join(root, "loop"))
	for _, nothing := range []string{filepath.Join(root, "loop"), filepath.Join(root, "missing"), "relative"} {
		if got := Path(nothing, ReadOnly); got != nil {
			t.Errorf("%s: %v", nothing, got)
		}
	}
}

// TestHomeIsNotShown looks at what a PATH brings with it.
func TestHomeIsNotShown(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := mkdir(t, root, "home")
	for _, dir := range []string{".ssh", ".cargo/registry", ".local/share/keyrings", ".nvm/v22/lib", "project/.git", ".pyenv/.git", ".pyenv/versions"} {
		mkdir(t, home, dir)
	}
	var search []string
	for _, dir := range []string{"bin", ".cargo/bin", ".local/bin", ".nvm/v22/bin", "project/bin", ".pyenv/shims"} {
		search = append(search, mkdir(t, home, dir))
	}
	search = append(search, "relative", "", filepath.Join(home, "missing"))
	s := Spec{Mounts: System(strings.Join(search, ":"), home)}
	for path, want := range map[string]bool{
		"bin": true, ".cargo/bin": true, ".local/bin": true, ".nvm/v22/bin": true, ".nvm/v22/lib": true, "project/bin": true, ".pyenv/versions": true,
		"": false, ".ssh": false, ".cargo/registry": false, ".local/share/keyrings": false, "project": false, "project/.git": false, ".nvm": false,
	} {
		if got := s.Visible(filepath.Join(home, path)); got != want {
			t.Errorf("~/%s is visible: %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]bool{"/usr/bin": true, "/etc/passwd": true, "/etc/shadow": false, "/var": false, "/root": false, "/run": false} {
		if got := s.Visible(path); got != want {
			t.Errorf("%s is visible: %v, want %v", path, got, want)
		}
	}
}

func TestProgramOfAPackage(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	modules := mkdir(t, root, "node_modules")
	mkdir(t, modules, ".bin")
	mkdir(t, modules, "tool", "lib")
	cli := filepath.Join(mkdir(t, modules, "tool", "bin"), "cli.js")
	if err := os.WriteFile(cli, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, "../tool/bin/cli.js", filepath.Join(modules, ".bin", "tool"))
	mkdir(t, root, "private")
	s := Spec{Mounts: Program(filepath.Join(modules, ".bin", "tool"))}
	for path, want := range map[string]bool{"node_modules/.bin/tool": true, "node_modules/tool/lib": true, "private": false} {
		if got := s.Visible(filepath.Join(root, path)); got != want {
			t.Errorf("%s is visible: %v, want %v", path, got, want)
		}
	}
	if got := Program(filepath.Join(root, "missing")); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

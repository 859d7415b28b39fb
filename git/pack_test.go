package git

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packedRepository is a repository whose objects are all in packs, most of them as deltas; it returns where the objects are,
// and the kind and content of each, as git reads them.
func packedRepository(t *testing.T) (objects string, all map[OID][2]string) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	random := rand.New(rand.NewPCG(1, 2))
	line := func(i int) string { return fmt.Sprintf("line %d %x\n", i, random.Uint64()) }
	var lines []string
	for i := range 5000 {
		lines = append(lines, line(i))
	}
	for n := range 12 {
		lines[random.IntN(len(lines))] = line(n)
		for i := range 50 {
			name := filepath.Join(dir, fmt.Sprintf("d%d", i%5), fmt.Sprintf("f%d", i))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(strings.Join(lines[i*10:i*10+20+n], "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-q", "-m", fmt.Sprint("change ", n))
		if n == 6 {
			git("repack", "-dq") // the rest goes to a second pack
		}
	}
	git("repack", "-dq", "--depth=50", "--window=20")
	all = map[OID][2]string{}
	rest := git("cat-file", "--batch", "--batch-all-objects")
	for rest != "" {
		var o, kind string
		var size int
		head, body, _ := strings.Cut(rest, "\n")
		if _, err := fmt.Sscan(head, &o, &kind, &size); err != nil {
			t.Fatal(err)
		}
		all[OID(o)] = [2]string{kind, body[:size]}
		rest = body[size+1:]
	}
	return filepath.Join(dir, ".git", "objects"), all
}

func TestPacks(t *testing.T) {
	objects, all := packedRepository(t)
	p := openPacks(objects)
	t.Cleanup(p.close)
	if len(p) != 2 || len(all) < 100 {
		t.Fatalf("%d packs of %d objects", len(p), len(all))
	}
	for o, want := range all {
		got, ok := p.read(o, want[0], 1<<20)
		if !ok || string(got) != want[1] {
			t.Errorf("%s %s: %v, %d bytes of %d", want[0], o, ok, len(got), len(want[1]))
		}
		if _, ok := p.read(o, want[0], len(want[1])-1); ok {
			t.Errorf("%s is larger than may be", o)
		}
		if _, ok := p.read(o, "tag", 1<<20); ok {
			t.Errorf("%s is no tag", o)
		}
	}
	for _, o := range []OID{"", "ff", OID(strings.Repeat("0", 40)), OID(strings.Repeat("f", 40)), OID(strings.Repeat("0", 64))} {
		if _, ok := p.read(o, "commit", 1<<20); ok {
			t.Errorf("found %q", o)
		}
	}
}

// TestDamagedPacks checks that of a damaged pack nothing is read that is not what its name says, and that nothing
// goes wrong with it.
func TestDamagedPacks(t *testing.T) {
	objects, all := packedRepository(t)
	files, err := filepath.Glob(filepath.Join(objects, "pack", "*"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		file := files[random.IntN(len(files))]
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		for range 1 + random.IntN(20) {
			bad[random.IntN(len(bad))] ^= byte(1 + random.IntN(255))
		}
		if random.IntN(4) == 0 {
			bad = bad[:random.IntN(len(bad))]
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		p := openPacks(objects)
		for o, want := range all {
			if got, ok := p.read(o, want[0], 1<<20); ok && string(got) != want[1] {
				t.Fatalf("%s has another content", o)
			}
		}
		p.close()
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("base"), []byte{4, 3, 0x91, 1, 2, 1, 'x'})
	f.Add([]byte(""), []byte{0, 0})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if body, ok := applyDelta(base, delta, 1<<16); ok && len(body) > 1<<16 {
			t.Errorf("%d bytes", len(body))
		}
	})
}

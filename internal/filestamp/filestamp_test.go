package filestamp

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUnchanged changes a file in each way that leaves something of it as it was.
func TestUnchanged(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name   string
		at     time.Time // when the file was written
		change func(t *testing.T, path string)
		want   bool
	}{
		{"nothing happens", old, func(*testing.T, string) {}, true},
		{"another size at the same time", old, func(t *testing.T, path string) { write(t, path, "longer", old) }, false},
		{"the same size at another time", old, func(t *testing.T, path string) { write(t, path, "two", time.Now()) }, false},
		{"another file of the same size and time", old, func(t *testing.T, path string) {
			write(t, path+".new", "two", old)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"the same size within a tick of the clock", time.Now(), func(*testing.T, string) {}, false},
		{"a time in the future", time.Now().Add(time.Hour), func(*testing.T, string) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			write(t, path, "one", c.at)
			before, err := Take(path)
			if err != nil {
				t.Fatal(err)
			}
			c.change(t, path)
			after, err := Take(path)
			if got := before.Unchanged(after); err != nil || got != c.want {
				t.Errorf("Unchanged = %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestNothing compares with a file that was never looked at, or is gone.
func TestNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	gone, err := Take(path)
	if err == nil {
		t.Fatal("there is a file")
	}
	write(t, path, "one", time.Now().Add(-time.Hour))
	there, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if (Stamp{}).Unchanged(there) || there.Unchanged(gone) || gone.Unchanged(gone) {
		t.Error("what is not there is unchanged")
	}
}

// write writes a file that says it was written at a time.
func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

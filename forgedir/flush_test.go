package forgedir

import (
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A version is remembered on the disk, and lies there whole, before it appears.
func TestFlushedBeforeItAppears(t *testing.T) {
	d := newFixture(t)
	v := sample()
	v.Tasks, v.Reviews, v.History, v.Observations = nil, nil, nil, nil
	var got []string
	d.disk.Reached = func(point string) { got = append(got, point) }
	d.disk.Flush = func(f *os.File) error {
		got = append(got, "flush "+path.Base(f.Name()))
		return f.Sync()
	}
	d.write(v)
	v.Seq++
	v.Summary.Reason = "something new"
	d.write(v)
	want := []string{
		"flush index.jsonl", "recorded", "base", "flush intents%fix-login.yaml.new", "staged fresh", "staged",
		"checked", "installed", "flush intents",
		"flush index.jsonl", "recorded", "base", "flush intents%fix-login.yaml.new", "staged fresh", "staged",
		"checked", "swapped", "dismissed", "flush intents",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

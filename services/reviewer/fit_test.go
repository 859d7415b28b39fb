package reviewer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// What there is room for is shown whole, and what is not is named.
func TestFit(t *testing.T) {
	testsize.Checks(t, 8, 100)
	rapid.Check(t, func(t *rapid.T) {
		var patch strings.Builder
		for i := range rapid.IntRange(1, 30).Draw(t, "files") {
			size := rapid.SampledFrom([]int{51, 51, 500, 3_000, 20_000, 100_000}).Draw(t, "size")
			f := many(1, size, fmt.Sprintf("f%03d%s", i, rapid.SampledFrom([]string{".go", ".lock"}).Draw(t, "kind")))
			if rapid.Bool().Draw(t, "a long line") {
				f = strings.ReplaceAll(f, "8\n+", "8 日 \u202e")
			}
			patch.WriteString(f)
		}
		files := split(patch.String())
		got := fit(files)
		if len(got.Diff) > maxFitted || prompt.Code("diff", got.Diff) == "" || strings.Contains(prompt.Code("diff", got.Diff), "are left out.)") {
			t.Fatalf("%d bytes", len(got.Diff))
		}
		named := 0
		for _, f := range files {
			switch {
			case slices.ContainsFunc(got.Left, func(l string) bool { return strings.HasPrefix(l, prompt.Path(f.path)+" ") }):
				named++
			case !strings.Contains(got.Diff, prompt.Visible(f.text)) && got.MoreLeft == 0:
				t.Fatalf("%s is neither shown nor named", f.path)
			}
		}
		if named != len(got.Left) || named > maxLeft {
			t.Fatalf("%d named of %d", named, len(got.Left))
		}
		if total := len(prompt.Visible(patch.String())); (total <= maxFitted) != (named == 0) {
			t.Fatalf("%d bytes, and %d files are not whole", total, named)
		}
	})
}

// One large file takes no room from small ones, and none of what people write makes room
// for what tools write.
func TestFitIsFair(t *testing.T) {
	small := many(20, 1000, "")
	got := fit(split(many(1, 500_000, "a.go") + many(1, 500_000, "b.go") + small + many(1, 9000, "go.sum")))
	for _, f := range split(small) {
		if !strings.Contains(got.Diff, f.text) {
			t.Errorf("%s is not whole", f.path)
		}
	}
	if len(got.Left) != 3 || !strings.HasPrefix(got.Left[0], `"a.go" +9803 -0: the first 1`) || !strings.HasPrefix(got.Left[1], `"b.go" `) ||
		!strings.HasSuffix(got.Left[2], "(lock file, or generated): nothing of it is shown") {
		t.Errorf("%q", got.Left)
	}
	if len(got.Diff) < maxFitted-2*leastFitted {
		t.Errorf("%d bytes, and more could be shown", len(got.Diff))
	}
	got = fit(split(many(1000, 10_000, "")))
	if len(got.Left) != maxLeft || got.MoreLeft == 0 || strings.Count(got.Diff, "diff --git") < maxFitted/leastFitted {
		t.Errorf("%d left, %d more, %d shown", len(got.Left), got.MoreLeft, strings.Count(got.Diff, "diff --git"))
	}
	got = fit(split("diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n"))
	if got.Diff != "" || got.Binary[0] != "x.png" || len(got.Left) > 0 {
		t.Errorf("%+v", got)
	}
}

//go:build cluster

package k8s

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// submit has another system in a namespace of its own ask for changes, and returns once all
// are stored.
func (in *installation) submit(t *testing.T, prefix string, count int) {
	t.Helper()
	in.asked = append(in.asked, in.submitTo(t, "shop", prefix, count)...)
}

// submitTo is submit for a project, by a recipe of it if one is given, and
// returns the names of the changes.
func (in *installation) submitTo(t *testing.T, project, prefix string, count int, recipe ...string) (names []string) {
	t.Helper()
	args := append([]string{"submit", project, prefix, "0", strconv.Itoa(count)}, recipe...)
	out := in.run(t, in.systems, "submit-"+prefix, map[string]string{"app": "submit"}, args...)
	if want := fmt.Sprintf("stored %d\n", count); out != want {
		t.Fatalf("the system said %q, want %q", out, want)
	}
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return names
}

// ask has another system ask for a change that an agent has to make.
func (in *installation) ask(t *testing.T, what string) {
	t.Helper()
	in.run(t, in.systems, "ask-"+strings.ReplaceAll(what, " ", "-"), map[string]string{"app": "submit"}, "ask", "shop", "Write "+what)
	in.asked = append(in.asked, what)
}

// file waits until a file of the base branch is as it should be, and returns it.
func (in *installation) file(t *testing.T, name string, good func(content string) bool) string {
	t.Helper()
	var content string
	script := `for i in 1 2 3 4 5 6 7 8 9 10; do git -C /repos/shop.git show "main:$0" && exit; sleep 1; done; exit 1`
	wait.Until(t, name+" is merged", func() bool {
		out, err := in.exec(wait.Context(t), in.git, "git-0", "git", "sh", "-c", script, name)
		content = out
		return err == nil && good(content)
	})
	return content
}

// merged waits until every change that was asked for is on the base branch, and checks that
// none is there twice and nothing else is.
func (in *installation) merged(t *testing.T) {
	t.Helper()
	began := time.Now()
	in.mergedAt(t, "shop", in.asked)
	figure(t, "%d changes merged, the last %s after they were waited for", len(in.asked), time.Since(began).Round(time.Second))
}

// mergedAt is merged for the changes of a project.
func (in *installation) mergedAt(t *testing.T, project string, names []string) {
	t.Helper()
	in.commits(t, project, len(names))
	log, err := in.exec(wait.Context(t), in.git, "git-0", "git", "git", "-C", "/repos/"+project+".git", "log", "--format=%s", "main")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(log), "\n")
	slices.Sort(got)
	want := []string{"first"}
	for _, name := range names {
		want = append(want, "Write "+name)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the base branch of %s has %q, want %q", project, got, want)
	}
}

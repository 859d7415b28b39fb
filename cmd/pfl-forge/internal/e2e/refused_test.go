package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestOriginRefusesPushes has a hook of the origin refuse every push to main,
// and later the push of one change. One line tells a person, nothing fails for
// the first, and only that change for the second.
//
// Nobody resumes anything: that the hook has changed its mind is found out by
// the pushes that are tried again.
func TestOriginRefusesPushes(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, map[string]string{"pfl-forge.yaml": `base_branch: main
recipes:
  write:
    params: [{name: LINE, question: "Which line?"}]
    run: echo "$LINE" > "$LINE.txt"
`})
	hook := filepath.Join(c.origin, "hooks", "pre-receive")
	refuses := func(words, when string) {
		t.Helper()
		write(t, hook, fmt.Sprintf("#!/bin/sh\nwhile read old new ref; do\n"+
			"if test $ref = refs/heads/main && %s; then printf '%s' >&2; exit 1; fi\ndone\n", when, words))
		if err := os.Chmod(hook, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	seen := filepath.Join(c.origin, "refused")
	refuses(`closed \033[31mfor maintenance\n`, "git log --format=%s $old..$new >>'"+seen+"'")
	for i := range 4 {
		line := fmt.Sprintf("line-%02d", i)
		c.says(c.forge("create", line, "--title", "Write "+line, "--body", "Please.", "--recipe", "write", "--with", "LINE="+line), 0)
	}
	said := regexp.MustCompile("the git origin (refuses|has refused) pushes")
	wait.Until(t, "all four wait", func() bool {
		got := c.forge("inbox", "--list").stdout
		return said.MatchString(got) && len(said.FindAllString(c.forge("status", "-o", "json").stdout, -1)) >= 4
	})
	got := c.forge("inbox", "-o", "json").stdout
	if strings.Count(got, `"waiting":`) != 1 || !strings.Contains(got, "main: closed for maintenance") || strings.Contains(got, "[31m") {
		t.Errorf("not one line of the inbox, with the words of the hook:\n%s", got)
	}
	if got := c.forge("status").stderr; !said.MatchString(got) {
		t.Errorf("status says:\n%s", got)
	}
	// One that was refused with all is then refused alone: a first refusal, with no other change
	// to compare it with, would be taken for one of all.
	first, err := os.ReadFile(seen)
	line := regexp.MustCompile(`line-\d\d`).FindString(string(first))
	if err != nil || line == "" {
		t.Fatalf("the hook refused %q: %v", first, err)
	}
	refuses(`no ticket\n`, `git log --format=%s $old..$new | grep -q `+line)
	c.says(c.forge("run"), 2, "3 done, 1 failed")
	c.says(c.forge("inbox", "--list"), 0, "no ticket")
	if got := c.forge("status").stderr; said.MatchString(got) {
		t.Errorf("the project still says that pushes are refused:\n%s", got)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	c.says(c.forge("retry", line), 0)
	c.says(c.forge("run"), 0, "4 done")
	for i := range 4 {
		if got := c.forge("history", fmt.Sprintf("line-%02d", i)); strings.Contains(got.stdout, "retry-agent") {
			t.Errorf("line-%02d spent an attempt:\n%s", i, got.stdout)
		}
	}
}

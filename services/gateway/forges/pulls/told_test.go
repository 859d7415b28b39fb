package pulls_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// TestToldAgain: what is known is told again with the sweeps while the pull request is open,
// and with growing pauses for a while after it has ended: the clock of the gateway that looked
// before may have been ahead, and then the rules take this one's look for an older one.
func TestToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &box{}
	var mu sync.Mutex
	var later time.Duration
	k := w.keeper(func(c *pulls.Config) {
		c.Deliveries, c.Hooks, c.Every = b, []string{"work"}, 5*time.Minute
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
	})
	w.open(k)
	w.run(k)
	n := 0
	passes := func(d time.Duration) {
		mu.Lock()
		later += d
		mu.Unlock()
		b.put("work", "push", object{})
	}
	more := func(what string) {
		t.Helper()
		wait.Until(t, "it is told: "+what, func() bool { return len(w.reports()) > n })
		n = len(w.reports())
	}
	more("at first")
	for range 3 {
		passes(6 * time.Minute)
		more("the same, again")
	}
	w.ready()
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	b.put("work", "pull_request", object{"pull_request": object{"number": 1}, "repository": object{"id": 1, "full_name": w.repo}})
	w.until("it is merged", func(p *forge.PullRequest) bool { return p.State == forge.PullMerged })
	n = len(w.reports())
	passes(6 * time.Minute)
	more("merged, again")
	swept := func() int { return w.fake.Asked("GET", w.repo+"/issues") }
	for range 12 {
		before := swept()
		passes(2 * time.Hour)
		wait.Until(t, "there is another sweep", func() bool { return swept() > before })
	}
	if more := len(w.reports()) - n; more > 4 {
		t.Errorf("it is told %d times more", more)
	}
}

// TestEndedLongAgo: what ended long before the gateway began is told once: a
// month of them would be asked for again and again.
func TestEndedLongAgo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(w.keeper())
	w.ready()
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	b := &box{}
	var mu sync.Mutex
	later := 3 * time.Hour
	w.run(w.keeper(func(c *pulls.Config) {
		c.Deliveries, c.Hooks, c.Every = b, []string{"work"}, 5*time.Minute
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
	}))
	w.until("it is merged", func(p *forge.PullRequest) bool { return p.State == forge.PullMerged })
	for range 5 {
		before := w.fake.Asked("GET", w.repo+"/issues")
		mu.Lock()
		later += 10 * time.Minute
		mu.Unlock()
		b.put("work", "push", object{})
		wait.Until(t, "there is another sweep", func() bool { return w.fake.Asked("GET", w.repo+"/issues") >= before+2 })
	}
	if n := len(w.reports()); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// TestMarkBelowWordsOfOthers: what another one writes above or around our text
// does not hide its mark, also not one that is quoted there.
func TestMarkBelowWordsOfOthers(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w := newWorld(t)
	w.open(w.keeper())
	body := w.show().Body
	mark, _, _ := strings.Cut(body, "\n")
	quoted := "> " + strings.Replace(mark, `"number":2`, `"number":9`, 1)
	broken := strings.Replace(mark, `"task"`, `"tusk"`, 1)
	foreign := strings.Replace(mark, `"shop"`, `"other"`, 1)
	for name, text := range map[string]string{
		"a summary above":      "## Summary by a bot\n\nIt mends.\n\n" + body,
		"lines of Windows":     "Summary\r\n" + strings.ReplaceAll(body, "\n", "\r\n"),
		"a quoted mark":        quoted + "\n" + body,
		"a mark in a sentence": "see " + quoted + "\n\n" + body,
		"one that is broken":   broken + "\n" + body,
		"of another project":   foreign + "\n" + body,
		"at the end":           "Summary\n\n" + mark,
	} {
		t.Run(name, func(t *testing.T) {
			w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"title": "t", "body": text}, nil)
			list := w.looked()
			if len(list) == 0 || list[0].To != w.to || list[0].Attempt != attempt {
				t.Errorf("reported is %+v", list)
			}
		})
	}
	for name, text := range map[string]string{"quoted alone": quoted, "in a sentence alone": "see " + mark, "broken alone": broken} {
		w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"title": "t", "body": text}, nil)
		if list := w.looked(); len(list) > 0 {
			t.Errorf("%s: reported is %+v", name, list)
		}
	}
}

// TestClosedAndPushed: GitHub does not open a pull request again whose branch was put elsewhere
// since it was closed. A person is told how that can be had, and no second one is opened.
func TestClosedAndPushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dialect, w.in.Policy.Method = hooks.GitHub, "squash"
	k := w.keeper()
	w.in.Number = w.open(k).Number
	former := w.in.Head
	w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil)
	w.move("forge/task-1", w.tip())
	w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
	opened := w.fake.Asked("POST", w.repo+"/pulls")
	_, err := k.Open(wait.Context(t), w.to, attempt, w.in)
	if person, ok := errors.AsType[*pulls.PersonError](err); !ok || !strings.Contains(person.What, "put the branch forge/task-1 back to "+former) ||
		!strings.Contains(person.What, "pull request 1") {
		t.Errorf("it is not opened again: %v", err)
	}
	if n := w.fake.Asked("POST", w.repo+"/pulls") - opened; n != 0 {
		t.Errorf("%d more were opened", n)
	}
	// What the person is told to do works.
	w.move("forge/task-1", former)
	w.in.Head = former
	if p := w.open(k); p.State != forge.PullOpen || p.Number != 1 {
		t.Errorf("afterwards it is %+v", p)
	}
}

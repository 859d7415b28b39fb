package outside

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestBoardIsMadeOnceForMany: those who ask for the same board at once share what is between its head and foot, each under their own name; other
// filters are other boards, and who may not see the project gets nothing of it, whoever is looking meanwhile.
func TestBoardIsMadeOnceForMany(t *testing.T) {
	w := bookkeeping(t)
	var made atomic.Int64
	var blocks atomic.Bool
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	w.goes(quarter, func() document.Queue {
		if blocks.Load() {
			made.Add(1)
			begun <- struct{}{}
			<-release
		}
		return line()
	})
	people := []*browser{w.signIn("viewer"), w.signIn("ada"), w.signIn("bob")}
	names := []string{"vic", "ada", "bob"}
	banker := w.signIn("banker")
	blocks.Store(true)
	var looking sync.WaitGroup
	var answered atomic.Int64
	look := func(n int) {
		p := people[n%3].get("/console/board")
		p.wants(t, "the board", http.StatusOK, "update-the-parser-1", `class="who"`, "<bdi>"+names[n%3]+"</bdi>")
		if strings.Contains(p.text, "<bdi>"+names[(n+1)%3]+"</bdi>") {
			t.Error("the board has the name of another person")
		}
		answered.Add(1)
	}
	looking.Go(func() { look(0) })
	wait.For(t, begun)
	for n := range 30 {
		looking.Go(func() { look(n) })
	}
	looking.Go(func() {
		people[0].get("/console/board?search=nothing").wants(t, "another filter", http.StatusOK, `value="nothing"`, "<bdi>vic</bdi>")
	})
	wait.For(t, begun) // it is another board, and does not wait for the first
	banker.get("/console/board?project=shop").wants(t, "of another project", http.StatusForbidden)
	if answered.Load() > 0 {
		t.Error("a board is answered that is not made")
	}
	close(release)
	looking.Wait()
	if n := made.Load(); n < 2 || n > 10 { // the first, the one that all wait for, and those of other projects
		t.Errorf("31 boards took %d answers", n)
	}
	p := people[0].get("/console/board?search=x")
	p.wants(t, "another filter", http.StatusOK, `value="x"`)
	if people[0].get("/console/board").text == p.text {
		t.Error("another filter is the same board")
	}
}

// TestPageIsNotSentTwice: a page that is as the browser has it is not sent again, to nobody else's tag, and never in place of an error.
func TestPageIsNotSentTwice(t *testing.T) {
	w := withConsole(t)
	path, _ := w.proposed("tagged")
	vic := w.signIn("viewer")
	first := vic.get("/console/board")
	tag := first.header.Get("ETag")
	if !strings.HasPrefix(tag, `"`) || len(tag) < 20 {
		t.Fatalf("the tag is %s", tag)
	}
	again := func(b *browser, path, tag string) page {
		b.headers = map[string]string{"If-None-Match": tag}
		defer func() { b.headers = nil }()
		return b.get(path)
	}
	if p := again(vic, "/console/board", tag); p.status != http.StatusNotModified || p.text != "" {
		t.Errorf("the same page: %d %s", p.status, p.text)
	}
	again(vic, "/console/board", `"another"`).wants(t, "another tag", http.StatusOK, "Risky")
	again(w.signIn("ada"), "/console/board", tag).wants(t, "another person", http.StatusOK, "Risky")
	again(vic, "/console/board?project=bank", tag).wants(t, "an error", http.StatusForbidden)
	w.request("ada", http.MethodPost, path+"/cancel", "{}").wants(t, "cancel", http.StatusOK)
	again(vic, "/console/board", tag).wants(t, "after a change", http.StatusOK, fmt.Sprintf(`ended otherwise <span class="count">%d</span>`, 1))
}

// TestSharedBoardsAreCounted: a person who is answered together with others is counted all the same, and told when their token asks too often.
func TestSharedBoardsAreCounted(t *testing.T) {
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}, PerSecond: 0.001, Burst: 5})
	var blocks atomic.Bool
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	w.goes(quarter, func() document.Queue {
		if blocks.Load() {
			begun <- struct{}{}
			<-release
		}
		return line()
	})
	bob := w.signIn("bob")
	blocks.Store(true)
	var looking sync.WaitGroup
	var refused atomic.Int64
	for range 20 {
		looking.Go(func() {
			if bob.get("/console/board").status == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
	}
	wait.For(t, begun)
	wait.Until(t, "those above the bound are told", func() bool { return refused.Load() == 15 })
	close(release)
	looking.Wait()
	if n := refused.Load(); n != 15 {
		t.Errorf("%d of 20 are refused", n)
	}
}

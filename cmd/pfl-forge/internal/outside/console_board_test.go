package outside

import (
	"fmt"
	"maps"
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

// slow is a runner that tells of a merge queue only when it is released, from
// the time at which it is held.
type slow struct {
	held    atomic.Bool
	begun   chan struct{} // has one for each answer that has begun
	made    atomic.Int64  // counts them
	release func()
	looking sync.WaitGroup // has those who wait for answers
}

// slowly starts such a runner. It is released when the test ends, however it does.
func (w *world) slowly() *slow {
	w.t.Helper()
	free := make(chan struct{})
	s := &slow{begun: make(chan struct{}, 1000), release: sync.OnceFunc(func() { close(free) })}
	w.goes(quarter, func() document.Queue {
		if s.held.Load() {
			s.made.Add(1)
			s.begun <- struct{}{}
			<-free
		}
		return line()
	})
	w.t.Cleanup(func() { s.release(); s.looking.Wait() })
	return s
}

// TestBoardIsMadeOnceForMany: those who ask for the same board at once share what is
// between its head and foot, each under their own name; other filters are other boards,
// and who may not see the project is told so at once, whoever waits for it meanwhile.
func TestBoardIsMadeOnceForMany(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	s := w.slowly()
	people := []*browser{w.signIn("viewer"), w.signIn("ada"), w.signIn("bob")}
	names := []string{"vic", "ada", "bob"}
	banker := w.signIn("banker")
	s.held.Store(true)
	var answered atomic.Int64
	look := func(n int) {
		p := people[n%3].get("/console/board")
		p.wants(t, "the board", http.StatusOK, "update-the-parser-1", `class="who"`, "<bdi>"+names[n%3]+"</bdi>")
		if strings.Contains(p.text, "<bdi>"+names[(n+1)%3]+"</bdi>") {
			t.Error("the board has the name of another person")
		}
		answered.Add(1)
	}
	s.looking.Go(func() { look(0) })
	wait.For(t, s.begun)
	for n := range 30 {
		s.looking.Go(func() { look(n) })
	}
	s.looking.Go(func() {
		people[0].get("/console/board?search=nothing").wants(t, "another filter", http.StatusOK, `value="nothing"`, "<bdi>vic</bdi>")
	})
	wait.For(t, s.begun) // it is another board, and does not wait for the first
	for range 3 {
		s.looking.Go(func() {
			people[0].get("/console/board?project=shop").wants(t, "of one project", http.StatusOK, "update-the-parser-1")
		})
	}
	wait.For(t, s.begun)
	for range 3 { // the same address, at the same time
		p := banker.get("/console/board?project=shop")
		if p.wants(t, "of another project", http.StatusForbidden); strings.Contains(p.text, "update-the-parser") {
			t.Error("it tells of another project")
		}
	}
	if answered.Load() > 0 {
		t.Error("a board is answered that is not made")
	}
	s.release()
	s.looking.Wait()
	if n := s.made.Load(); n < 2 || n > 10 { // the first, the one that all wait for, and those of other addresses
		t.Errorf("31 boards took %d answers", n)
	}
	p := people[0].get("/console/board?search=x")
	p.wants(t, "another filter", http.StatusOK, `value="x"`)
	if people[0].get("/console/board").text == p.text {
		t.Error("another filter is the same board")
	}
}

// TestPageIsNotSentTwice: a page that is as the browser has it is not sent
// again, to nobody else's tag, and never in place of an error.
func TestPageIsNotSentTwice(t *testing.T) {
	t.Parallel()
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

// TestSharedBoardsAreCounted: a person who is answered together with others is
// counted all the same, and told when their token asks too often.
func TestSharedBoardsAreCounted(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}, PerSecond: 0.001, Burst: 5})
	s := w.slowly()
	bob := w.signIn("bob")
	s.held.Store(true)
	var refused atomic.Int64
	for range 20 {
		s.looking.Go(func() {
			if bob.get("/console/board").status == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
	}
	wait.For(t, s.begun)
	wait.Until(t, "those above the bound are told", func() bool { return refused.Load() == 15 })
	s.release()
	s.looking.Wait()
	if n := refused.Load(); n != 15 {
		t.Errorf("%d of 20 are refused", n)
	}
}

// TestBoardOfOneWhoLosesARole: a board that is made in the name of one who loses a role meanwhile
// is shown to nobody else; the others see all that they may, and the one sees the rest.
func TestBoardOfOneWhoLosesARole(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	list := map[string]string{"dee": "person: dee, projects: {bank: [viewer], shop: [viewer]}", "fay": "person: fay, projects: {bank: [viewer], shop: [viewer]}"}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "they are known", func() bool { return w.knows("dee") && w.knows("fay") })
	dee, fay := w.signIn("dee"), w.signIn("fay")
	s := w.slowly()
	s.held.Store(true)
	s.looking.Go(func() { fay.get("/console/board").wants(t, "the first", http.StatusOK) })
	for range 2 { // a queue of each project
		wait.For(t, s.begun)
	}
	s.looking.Go(func() { // the next one is made in her name
		dee.get("/console/board").wants(t, "who loses a role", http.StatusOK, "<bdi>dee</bdi>", "update-the-parser-1")
	})
	list["dee"] = "person: dee, projects: {shop: [viewer]}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool {
		return w.request("dee", http.MethodGet, "/api/v1/projects/bank/intents", "").status == http.StatusForbidden
	})
	for range 5 {
		s.looking.Go(func() {
			p := fay.get("/console/board")
			p.wants(t, "who waits as well", http.StatusOK, "<bdi>fay</bdi>", "update-the-parser-1", "<code>bank/")
			if strings.Contains(p.text, "Cannot be read now") || strings.Contains(p.text, "cannot be read now") {
				t.Errorf("a project is left out:\n%s", p.text)
			}
		})
	}
	s.looking.Go(func() { // it is seen that they wait by that of another address, which comes later
		fay.get("/console/board?search=x").wants(t, "another filter", http.StatusOK)
	})
	for range 2 {
		wait.For(t, s.begun)
	}
	s.release()
	s.looking.Wait()
	if n := s.made.Load(); n > 10 { // four of the first and of another filter, two of her own, and two or four of the one that the others share
		t.Errorf("they took %d answers", n)
	}
	p := dee.get("/console/board?project=shop&project=bank")
	p.wants(t, "afterwards", http.StatusOK, "Cannot be read now: <code>bank</code>")
}

package outside

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// BenchmarkBoard has 1,000 intents that wait for a person, and 50 people who look at
// the board: 49 programs that do as the script of a page does, and a Chromium. An
// iteration cancels one of the intents, and ends when everybody has seen that. It
// reports how long that took, from before the request to cancel is sent, to the page
// that a program has got, and to the frame that the browser has drawn; the bytes that a
// program got for it; and of a first look at the board, its bytes and the first paint.
func BenchmarkBoard(b *testing.B) {
	const live, people, programs = 1000, 10, 49
	ctx := openBrowser(b)
	w := start(b, gateway.Settings{
		Console: gateway.Console{Key: filepath.Join(b.TempDir(), "k"), Projects: []string{"shop"}}, PerSecond: 1e6, Burst: 1e6,
	})
	w.decides(quota.Limits{})
	list := maps.Clone(entries)
	for i := range people {
		list[fmt.Sprintf("looks%d", i)] = fmt.Sprintf("person: p%d, projects: {shop: [viewer]}", i)
	}
	w.writeTokens(list)
	wait.Until(b, "everybody is known", func() bool { return w.knows("looks0") })
	paths := w.waiting(live)

	var seen []*watcher
	following, leave := context.WithCancel(b.Context())
	var running sync.WaitGroup
	b.Cleanup(func() { leave(); running.Wait() })
	for i := range programs {
		one := newWatcher(w, fmt.Sprintf("looks%d", i%people), &running)
		running.Go(func() { one.follow(following) })
		seen = append(seen, one)
	}
	acts(ctx, b, chromedp.Navigate(w.base+"/console/sign-in?next=/console/board"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", w.secrets["looks0"]), chromedp.Submit("#token"), chromedp.WaitVisible("table.board"))
	acts(ctx, b, chromedp.Navigate(w.base+"/console/board"), chromedp.WaitVisible("table.board"))
	var paint float64
	wait.Until(b, "the browser has painted", func() bool {
		paint = reads(ctx, b, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`))
		return paint > 0
	})
	first := reads(ctx, b, chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].decodedBodySize`))
	reads(ctx, b, chromedp.Evaluate[bool](`window.seen = {}, new MutationObserver(() => {
		const count = document.getElementById("states").textContent.match(/waits for a person (\d+)/)[1];
		requestAnimationFrame(() => setTimeout(() => { window.seen[count] ??= Date.now(); }, 0));
	}).observe(document.getElementById("main"), { childList: true, subtree: true, characterData: true }), true`))
	left := len(paths)
	for _, one := range seen {
		wait.Until(b, "everybody looks", func() bool { return one.at(left) != 0 })
	}
	before := sent(seen)
	var took, pixel []time.Duration
	for b.Loop() {
		left--
		began := time.Now()
		w.request("ada", http.MethodPost, paths[left]+"/cancel", "{}").wants(b, "cancel", http.StatusOK)
		for _, one := range seen {
			wait.Until(b, "all programs have seen it", func() bool { return one.at(left) != 0 })
			took = append(took, time.UnixMilli(one.at(left)).Sub(began))
		}
		var drawn float64
		wait.Until(b, "the browser has drawn it", func() bool {
			drawn = reads(ctx, b, chromedp.Evaluate[float64](fmt.Sprintf(`window.seen[%d] ?? 0`, left)))
			return drawn != 0
		})
		pixel = append(pixel, time.UnixMilli(int64(drawn)).Sub(began))
	}
	b.ReportMetric(part(took, 50), "p50-ms")
	b.ReportMetric(part(took, 99), "p99-ms")
	b.ReportMetric(part(pixel, 50), "pixel-p50-ms")
	b.ReportMetric(part(pixel, 99), "pixel-p99-ms")
	b.ReportMetric(float64(sent(seen)-before)/float64(len(took)), "bytes/change")
	b.ReportMetric(first, "page-bytes")
	b.ReportMetric(paint, "paint-ms")
}

// part returns a percentile of durations, in milliseconds.
func part(list []time.Duration, percent int) float64 {
	slices.Sort(list)
	return float64(list[(len(list)*percent+99)/100-1].Microseconds()) / 1000
}

// sent adds up the bytes that all have got.
func sent(list []*watcher) (n int64) {
	for _, one := range list {
		n += one.bytes.Load()
	}
	return n
}

// waiting submits so many intents, each of which waits for a person then.
func (w *world) waiting(n int) []string {
	w.t.Helper()
	w.analysis = func(c *forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Type: "fix", Tasks: []forge.TaskPlan{{
			Name: "one", Title: c.Intent.Title, Plan: "Raise the version in go.mod, and mend what does not compile.", RelevantFiles: []string{"go.mod"},
		}}}
	}
	paths := make([]string, n)
	var submitting sync.WaitGroup
	next := make(chan int)
	for range 8 {
		submitting.Go(func() {
			for i := range next {
				made := w.request("ada", http.MethodPost, intents, fmt.Sprintf(`{"title": "Update the parser to version 1.%d", "body": "Version 1.%d is old."}`, i, i))
				paths[i] = made.header.Get("Location")
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	submitting.Wait()
	look := w.signIn("looks0")
	wait.Moving(w.t, "all wait for a person", func() bool { return waitingOn(look.get("/console/board").text) == n }, func() int {
		return waitingOn(look.get("/console/board").text)
	})
	return paths
}

// counts matches how many intents wait for a person, as the board says.
var counts = regexp.MustCompile(`waits for a person <span class="count">(\d+)</span>`)

// waitingOn returns that number; -1 if it is not there.
func waitingOn(text string) int {
	m := counts.FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(m[1]) // they are digits
	return n
}

// watcher looks at the board as the script of a page does.
type watcher struct {
	world  *world
	cookie string
	client *http.Client
	// tag is that of the page that it has.
	tag string
	// bytes counts what came from the gateway.
	bytes   atomic.Int64
	running *sync.WaitGroup

	mu sync.Mutex
	// seen says when a number of intents was seen first, in milliseconds.
	seen map[int]int64
}

func newWatcher(w *world, who string, running *sync.WaitGroup) *watcher {
	one := &watcher{world: w, cookie: w.signIn(who).cookie, seen: map[int]int64{}, running: running}
	dialer := net.Dialer{}
	one.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		return &counted{c, &one.bytes}, err
	}}}
	return one
}

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn

	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// at returns when a number was seen first; 0 if it was not.
func (o *watcher) at(n int) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[n]
}

// open asks for something of the console.
func (o *watcher) open(ctx context.Context, path string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.world.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.AddCookie(&http.Cookie{Name: "__Host-pfl-forge-session", Value: o.cookie})
	return o.client.Do(r)
}

// follow looks at the board once, and again whenever something has changed, until ctx ends.
func (o *watcher) follow(ctx context.Context) {
	defer o.client.CloseIdleConnections()
	events, err := o.open(ctx, "/console/projects/shop/events")
	if err != nil {
		o.world.t.Error(err)
		return
	}
	defer func() { _ = events.Body.Close() }()
	rng := rand.New(rand.NewPCG(1, 1))
	var last time.Time
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	o.running.Go(func() {
		for lines := bufio.NewScanner(events.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "event: ") {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		// What the script does: of several changes it waits for more of the same, and asks once.
		left := max(pageGather, pageWait-time.Since(last))
		select {
		case <-ctx.Done():
			return
		case <-wait.Moment(rng, left, left+time.Millisecond):
		}
		select {
		case <-changed:
		default:
		}
		last = time.Now()
		o.look(ctx)
	}
}

// The script of pages asks for a page pageGather after it has heard of a
// change, and pageWait after the page before at the soonest.
const pageWait, pageGather = 100 * time.Millisecond, 20 * time.Millisecond

// look gets the board.
func (o *watcher) look(ctx context.Context) {
	resp, err := o.open(ctx, "/console/board", "If-None-Match", o.tag)
	if err != nil {
		return
	}
	if tag := resp.Header.Get("ETag"); resp.StatusCode == http.StatusOK {
		o.tag = tag
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if n := waitingOn(string(text)); err == nil && n >= 0 {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.seen[n] == 0 {
			o.seen[n] = time.Now().UnixMilli()
		}
	}
}

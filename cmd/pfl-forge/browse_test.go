package main

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// browsing is the browser of a script: it keeps cookies, and where it is.
type browsing struct {
	client *http.Client
	base   string
	// told is closed when the stream that is followed has ended.
	told chan struct{}
}

// browse looks at the console as a browser does, without one:
//
//	browse open <file>             go to the address that a file has
//	browse see <path> <regexp>     ask for a page until it has something
//	browse miss <path> <regexp>    ask for a page until it has something no more
//	browse send <path> <decision>  send the form of a page that decides something
//	browse follow <path>           begin to follow a stream of events
//	browse told                    wait until that stream ends
func (b *browsing) browse(ts *testscript.TestScript, neg bool, args []string) {
	args = append(args, "", "", "")
	if neg || args[0] == "" {
		ts.Fatalf("usage: browse open|see|miss|send|follow|told ...")
	}
	switch args[0] {
	case "open":
		b.open(ts, args[1])
	case "see", "miss":
		want, text := regexp.MustCompile(args[2]), ""
		b.until(ts, args[0]+" "+args[2], func() bool {
			_, text = b.ask(ts, http.MethodGet, args[1], nil)
			return want.MatchString(text) == (args[0] == "see") && strings.Contains(text, "<html")
		}, &text)
	case "send":
		_, text := b.ask(ts, http.MethodGet, args[1], nil)
		path, form := formOf(ts, text, args[2])
		if status, text := b.ask(ts, http.MethodPost, path, form); status != http.StatusOK {
			ts.Fatalf("%d\n%s", status, text)
		}
	case "follow":
		b.follow(ts, args[1])
	case "told":
		ctx, cancel := wait.Bounded()
		defer cancel()
		select {
		case <-b.told:
		case <-ctx.Done():
			ts.Fatalf("the stream goes on")
		}
	default:
		ts.Fatalf("unknown: %s", args[0])
	}
}

// open goes to the address that a program writes into a file.
func (b *browsing) open(ts *testscript.TestScript, file string) {
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	b.client = &http.Client{Jar: jar}
	var address, text string
	b.until(ts, "the address", func() bool {
		data, _ := os.ReadFile(ts.MkAbs(file))
		text = string(data)
		address = strings.TrimSpace(text)
		return strings.HasSuffix(text, "\n")
	}, &text)
	u, err := url.Parse(address)
	ts.Check(err)
	b.base = "http://" + u.Host
	if status, text := b.ask(ts, http.MethodGet, u.RequestURI(), nil); status != http.StatusOK {
		ts.Fatalf("%d\n%s", status, text)
	}
}

// until waits for something, and shows the text if it does not come.
func (b *browsing) until(ts *testscript.TestScript, what string, cond func() bool, text *string) {
	ctx, cancel := wait.Bounded()
	defer cancel()
	if !wait.Poll(ctx, cond) {
		ts.Fatalf("%s: not in\n%s", what, *text)
	}
}

// ask sends a request, and returns what came in the end.
func (b *browsing) ask(ts *testscript.TestScript, method, path string, form url.Values) (int, string) {
	ctx, cancel := wait.Bounded()
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, strings.NewReader(form.Encode()))
	ts.Check(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.base)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := b.client.Do(r)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.StatusCode, string(data)
}

// follow begins to follow a stream.
func (b *browsing) follow(ts *testscript.TestScript, path string) {
	ctx, cancel := context.WithCancel(context.Background())
	ts.Defer(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, http.NoBody)
	ts.Check(err)
	resp, err := b.client.Do(r) //nolint:bodyclose // the goroutine that reads it does
	ts.Check(err)
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		ts.Fatalf("%d, %s", resp.StatusCode, kind)
	}
	told := make(chan struct{})
	b.told = told
	go func() {
		defer close(told)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}()
}

// hidden matches the hidden fields of a form.
var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// formOf returns where the form of a page leads that decides something, and its fields.
func formOf(ts *testscript.TestScript, page, decision string) (path string, fields url.Values) {
	for _, text := range strings.Split(page, "<form ")[1:] {
		text, _, _ = strings.Cut(text, "</form>")
		if !strings.Contains(text, `name="decision" value="`+decision+`"`) {
			continue
		}
		_, path, _ = strings.Cut(text, `action="`)
		path, _, _ = strings.Cut(path, `"`)
		fields = url.Values{}
		for _, m := range hidden.FindAllStringSubmatch(text, -1) {
			fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
		}
		return path, fields
	}
	ts.Fatalf("there is no form to %s in\n%s", decision, page)
	return "", nil
}

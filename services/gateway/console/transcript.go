package console

import (
	"net/http"
	"net/url"

	"github.com/pfl-forge/pfl-forge/document"
)

// transcriptPage has a page of what was done in an attempt.
type transcriptPage struct {
	document.Transcript
	// Back leads to the intent.
	Back string
	// Blocks are the lines, in runs that are folded together.
	Blocks []block
	// More leads to the next page, and First to the first one; empty where there is none.
	More, First string
}

// block is a run of lines.
type block struct {
	// Head is the line that is shown; Lines follow it, folded.
	Head  numbered
	Lines []numbered
}

// numbered is a line with its place on the page, by which it can be linked.
type numbered struct {
	document.TranscriptLine
	N int
}

// transcript shows what an agent or command did in an attempt, a page at a time.
func (v *visit) transcript() error {
	p, id, err := v.named()
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	ask := url.Values{}
	for _, name := range []string{"task", "step", "attempt", "after"} {
		if value := q.Get(name); value != "" {
			ask.Set(name, value)
		}
	}
	page := transcriptPage{}
	if err := v.ask(v.r.Context(), p, "/intents/"+string(id)+"/transcript?"+ask.Encode(), &page.Transcript); err != nil {
		return err
	}
	page.Back = intentPath(p, id)
	here := page.Back + "/transcript"
	if ask.Has("after") {
		ask.Del("after")
		page.First = address(here, ask)
	}
	next := page.Next
	if next == "" {
		next = page.Later
	}
	if next != "" {
		ask.Set("after", next)
		page.More = address(here, ask)
	}
	page.Blocks = blocks(page.Lines)
	return v.show(http.StatusOK, "transcript", "Transcript", page)
}

// blocks puts the output of a command behind the line that says that it ran.
func blocks(lines []document.TranscriptLine) (list []block) {
	for i, l := range lines {
		one := numbered{l, i + 1}
		if n := len(list); n > 0 && (l.Kind == "output" || l.Kind == "usage" || l.Kind == "command_ended") {
			list[n-1].Lines = append(list[n-1].Lines, one)
			continue
		}
		list = append(list, block{Head: one})
	}
	return list
}

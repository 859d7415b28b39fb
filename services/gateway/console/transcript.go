package console

import (
	"net/http"
	"net/url"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/folds"
)

// transcriptPage has a page of what was done in an attempt.
type transcriptPage struct {
	document.Transcript
	// Back leads to the intent.
	Back string
	// Blocks are the lines, in runs that are folded together.
	Blocks []folds.Block
	// More leads to the next page, and First to the first one; empty where there is none.
	More, First string
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
	page.Blocks = folds.Of(page.Lines)
	return v.show(http.StatusOK, "transcript", "Transcript", page)
}

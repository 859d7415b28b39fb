package overhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/packed"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/document/whole"
)

// maxPages bounds the pages of a list or a change that are read.
const maxPages = 1000

// get reads an answer.
func (c *Client) get(ctx context.Context, query url.Values, path ...string) ([]byte, error) {
	body, _, err := c.do(ctx, &request{method: http.MethodGet, address: c.path(path...), query: query})
	return body, err
}

// read reads a document of the API, which is one of package document or of those below
// it: the gateway writes the same types. Fields that are not known are passed over.
func read[T any](ctx context.Context, c *Client, query url.Values, path ...string) (doc T, err error) {
	body, err := c.get(ctx, query, path...)
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return doc, garbage("the answer of the server is not understood: %v", err)
	}
	clean(&doc)
	return doc, nil
}

// missing returns ErrNoIntent for an answer that says so.
func missing(err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok && r.Status == http.StatusNotFound {
		return fmt.Errorf("%w: %w", ErrNoIntent, err)
	}
	return err
}

// large returns ErrLarge for an answer that says so: an intent as a whole is
// refused in no other way.
func large(id forge.IntentID, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok && r.Status == http.StatusConflict {
		return fmt.Errorf("intent %s %w", id, ErrLarge)
	}
	return err
}

// Overview returns all intents of the project, by their ids, and the state of the project.
// The pages are read one after the other; an intent that comes in meanwhile is there or is
// not, and none is there twice. The state of the project is that of the last page.
func (c *Client) Overview(ctx context.Context) (all whole.List, err error) {
	after := forge.IntentID("")
	for range maxPages {
		query := url.Values{}
		if after != "" {
			query.Set("after", string(after))
		}
		body, err := c.get(ctx, query, "whole")
		if err != nil {
			return all, err
		}
		page, err := whole.ParseList(body)
		if err != nil {
			return all, garbage("the answer of the server is not understood: %v", err)
		}
		clean(&page)
		all.Intents, all.Project = append(all.Intents, page.Intents...), page.Project
		if page.Next == "" {
			return all, nil
		}
		if page.Next <= after {
			return all, garbage("the list of the server does not end")
		}
		after = page.Next
	}
	return all, garbage("the list of the server does not end")
}

// Whole returns an intent, and its records for people, without as many from the beginning as
// are known already. What it returns belongs to the caller. Errors: ErrNoIntent, ErrLarge.
func (c *Client) Whole(ctx context.Context, id forge.IntentID, known int) (*whole.Intent, []forge.Record, error) {
	query := url.Values{}
	if known > 0 {
		query.Set("records", strconv.Itoa(known))
	}
	body, err := c.get(ctx, query, "intents", string(id), "whole")
	if err != nil {
		return nil, nil, missing(large(id, err))
	}
	d, err := whole.ParseIntent(body)
	if err != nil {
		return nil, nil, garbage("the answer of the server is not understood: %v", err)
	}
	records, err := packed.Records(&d)
	if err != nil {
		return nil, nil, garbage("the answer of the server is not understood: %v", err)
	}
	asked := slices.Clone(d.View.Intent.Clarifications)
	clean(&d)
	clean(&records)
	c.keep(asked, d.View.Intent.Clarifications)
	if d.View.Intent.ID != id {
		return nil, nil, garbage("the server answers about intent %s", d.View.Intent.ID)
	}
	return &d, records, nil
}

// keep notes the questions that are shown otherwise than they were asked. An
// answer repeats the question to which it belongs, and the rules refuse it
// where that is not the one that they know, to the character.
func (c *Client) keep(asked, shown []forge.Clarification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range asked {
		if asked[i].Question != shown[i].Question {
			c.raw[shown[i].Question] = asked[i].Question
		}
	}
}

// Diff returns the change of an attempt, all its pages. Error: ErrNoIntent.
func (c *Client) Diff(ctx context.Context, req document.DiffRequest) (document.Diff, error) {
	query := url.Values{}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	for name, text := range map[string]string{
		"task": string(req.Task), "step": string(req.Step), "attempt": number(req.Attempt), "since": number(req.Since), "whitespace": req.Whitespace,
	} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if req.Stat {
		query.Set("stat", "true")
	}
	var all document.Diff
	for page := range maxPages {
		d, err := read[document.Diff](ctx, c, query, "intents", string(req.Intent), "diff")
		switch {
		case err != nil:
			return all, err
		case page == 0:
			all = d
		default:
			all.Files = joined(all.Files, d.Files)
		}
		if all.Next = ""; d.Next == "" {
			return all, nil
		}
		query.Set("after", d.Next)
	}
	return all, garbage("the change of the server does not end")
}

// joined adds the files of a page to those before it. The first one goes on with the last,
// or with its last hunk, where the page before ended within: a page repeats the head of
// the file and of the hunk that it goes on with, and has only the lines that are left.
func joined(files, more []document.DiffFile) []document.DiffFile {
	if len(files) == 0 || len(more) == 0 || files[len(files)-1].Path != more[0].Path || files[len(files)-1].OldPath != more[0].OldPath {
		return append(files, more...)
	}
	last, first := &files[len(files)-1], &more[0]
	if n := len(last.Hunks); n > 0 && len(first.Hunks) > 0 && sameHunk(&last.Hunks[n-1], &first.Hunks[0]) {
		last.Hunks[n-1].Lines = append(last.Hunks[n-1].Lines, first.Hunks[0].Lines...)
		first.Hunks = first.Hunks[1:]
	}
	last.Hunks = append(last.Hunks, first.Hunks...)
	return append(files, more[1:]...)
}

// sameHunk reports whether two hunks are parts of one.
func sameHunk(a, b *document.DiffHunk) bool {
	return a.OldStart == b.OldStart && a.OldLines == b.OldLines && a.NewStart == b.NewStart && a.NewLines == b.NewLines
}

// Queue returns the merge queue.
func (c *Client) Queue(ctx context.Context) (document.Queue, error) {
	return read[document.Queue](ctx, c, nil, "queue")
}

// Costs returns the usage of agents in a time, by the group that is asked for, with budgets.
// The rows are those of a runner: at most 200, and the sum of the others.
func (c *Client) Costs(ctx context.Context, req document.CostsRequest) (document.Costs, error) {
	query := url.Values{}
	if req.By != "" {
		query.Set("by", string(req.By))
	}
	for name, at := range map[string]time.Time{"since": req.Since, "until": req.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return read[document.Costs](ctx, c, query, "costs")
}

// Health returns how the work of some weeks went.
func (c *Client) Health(ctx context.Context, weeks int) (figures.Health, error) {
	return read[figures.Health](ctx, c, url.Values{"weeks": {strconv.Itoa(weeks)}}, "health")
}

// Settings returns by which settings the project is worked on.
func (c *Client) Settings(ctx context.Context) (setup.InForce, error) {
	return read[setup.InForce](ctx, c, nil, "settings")
}

// Timeline returns the records of an intent in words. Error: ErrNoIntent.
func (c *Client) Timeline(ctx context.Context, id forge.IntentID) (list []document.Record, err error) {
	query := url.Values{"limit": {"500"}}
	for range maxPages {
		page, err := read[document.Timeline](ctx, c, query, "intents", string(id), "timeline")
		if err != nil {
			return nil, missing(err)
		}
		list = append(list, page.Records...)
		if page.Next == 0 {
			return list, nil
		}
		query.Set("after", strconv.Itoa(page.Next))
	}
	return nil, garbage("the timeline of the server does not end")
}

// Transcript returns the lines of an attempt until now, all its pages; nothing
// for one that has none, or whose lines are not kept any more.
func (c *Client) Transcript(ctx context.Context, req document.TranscriptRequest) (list []document.TranscriptLine, err error) {
	query := url.Values{"step": {string(req.Step)}, "attempt": {strconv.Itoa(req.Attempt)}}
	if req.Task != "" {
		query.Set("task", string(req.Task))
	}
	for range maxPages {
		page, err := read[document.Transcript](ctx, c, query, "intents", string(req.Intent), "transcript")
		if r, ok := errors.AsType[*Refusal](err); ok && (r.Status == http.StatusNotFound || r.Status == http.StatusConflict) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, page.Lines...)
		if page.Next == "" {
			return list, nil
		}
		query.Set("after", page.Next)
	}
	return nil, garbage("the transcript of the server does not end")
}

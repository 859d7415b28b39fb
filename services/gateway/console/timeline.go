package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/download"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/gantt"
)

// perTimeline is how many records a page of a timeline has.
const perTimeline = 100

// mostDownloaded bounds the lines of a download: a browser waits for all of them.
const mostDownloaded = 20_000

// timelinePage has the data of the timeline of an intent.
type timelinePage struct {
	document.Timeline
	Project forge.ProjectID
	// Path is the address of the page of the intent, and Command goes through
	// its records in a terminal.
	Path, Command string
	// Trace is the address of the newest run's trace; empty without one.
	Trace string
	Chart gantt.Chart
	// First and Last are the places of the first and the last record that is shown, from 1.
	First, Last    int
	Earlier, Later string
}

// timeline shows the attempts of an intent with the waits between them, and its records.
func (v *visit) timeline() error {
	p, id, err := v.named()
	if err != nil {
		return err
	}
	page := timelinePage{Project: p}
	ask := url.Values{"limit": {strconv.Itoa(perTimeline)}}
	if after := v.r.URL.Query().Get("after"); after != "" {
		ask.Set("after", after)
	}
	if err := v.ask(v.r.Context(), p, "/intents/"+string(id)+"/timeline?"+ask.Encode(), &page.Timeline); err != nil {
		return err
	}
	v.live = []forge.ProjectID{p}
	page.Path = intentPath(p, id)
	page.Command = "pfl-forge replay " + string(id)
	if v.console.cfg.Own == nil {
		page.Command = "pfl-forge --project " + string(p) + " replay " + string(id)
	}
	if trace := v.console.cfg.Trace; trace != nil && page.TraceID != "" {
		page.Trace = trace(page.TraceID)
	}
	page.First, page.Last = min(page.From+1, page.Total), page.From+len(page.Records)
	here := page.Path + "/timeline"
	if page.From > 0 {
		page.Earlier = address(here, url.Values{"after": {strconv.Itoa(max(0, page.From-perTimeline))}})
	}
	if page.Next > 0 {
		page.Later = address(here, url.Values{"after": {strconv.Itoa(page.Next)}})
	}
	page.chart(v.console.cfg.Now())
	return v.show(http.StatusOK, "timeline", "Timeline: "+page.Title, &page)
}

// chart makes the chart of the time of the page: to now, if something goes on
// and there is no later page.
func (t *timelinePage) chart(now time.Time) {
	if len(t.Records) == 0 {
		return
	}
	from, to := t.Records[0].At, t.Records[len(t.Records)-1].At
	for _, s := range t.Spans {
		if t.Next == 0 && s.To.IsZero() && now.After(to) {
			to = now
		}
	}
	t.Chart = gantt.Of(t.Spans, from, to)
}

// TaskName returns the name of a task within its intent.
func (t *timelinePage) TaskName(id forge.TaskID) string {
	return strings.TrimPrefix(string(id), string(t.Intent)+"-")
}

// intentPath returns the address of the page of an intent.
func intentPath(p forge.ProjectID, id forge.IntentID) string {
	return Base + "projects/" + string(p) + "/intents/" + string(id)
}

// records downloads all records of an intent, one a line.
func (v *visit) records() error {
	p, id, err := v.named()
	if err != nil {
		return err
	}
	defer v.hurry()()
	d := &download.File{To: v.w, Name: fmt.Sprintf("records-%s-%s.jsonl", p, id)}
	for after := 0; ; {
		var page document.Timeline
		err := v.ask(v.r.Context(), p, fmt.Sprintf("/intents/%s/timeline?limit=500&after=%d", id, after), &page)
		if err == nil && page.Total > mostDownloaded {
			err = &refusal{http.StatusBadRequest, fmt.Sprintf(
				"It has %d records, and a download may have %d. Read them by: pfl-forge replay %s -o json", page.Total, mostDownloaded, id,
			)}
		}
		if err != nil {
			return cutOff(v, d, err)
		}
		for i := range page.Records {
			if err := d.Line(page.Records[i]); err != nil {
				return cutOff(v, d, err)
			}
		}
		if after = page.Next; after == 0 {
			return d.End()
		}
	}
}

// The attacks that the timeline and its download have to stand, each with its test:
//
//   - a reason, a name or a rule's detail is HTML, reorders text or cannot be seen: TestConsoleTimelineTexts
//   - an intent has thousands of records, or after is beyond all of them: TestConsoleTimeline
//   - a name writes into a header, or into the folder of the download: TestConsoleRecords
//   - a line of the file steers the terminal that prints it: TestConsoleRecords
//   - the role is taken away while the page is open, or in the middle of a download: TestConsoleTimelineTexts,
//     TestDownloadIsWholeOrFails
//   - a worker's clock puts its attempt into another year: TestTimelineOfLiars

// downloadTime bounds the reading for a download. The gateway gives up an answer after
// 30 seconds, and what is read after that keeps a runner from reading for others.
const downloadTime = 25 * time.Second

// hurry bounds the rest of the visit by downloadTime, until the function that it returns is called.
func (v *visit) hurry() (end func()) {
	ctx, end := context.WithTimeout(v.r.Context(), downloadTime)
	v.r = v.r.WithContext(ctx)
	return end
}

// cutOff ends a download that is not whole, and logs it where a part was sent.
func cutOff(v *visit, d *download.File, err error) error {
	return d.Failed(err, func() {
		v.console.cfg.Log.InfoContext(v.r.Context(), "a download is cut off", "token", v.token.Name, "file", d.Name, "error", err)
	})
}

package requests

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// What a person may read is decided in this file, from the request and the project in its subject
// alone. Each rule is a closed list: a subject that is of no kind below is refused, and so is each
// message whose own subject is not of the project, should a filter ever match one.
//
//	forge.journal.<project>.<intent>                  decisions on intents
//	forge.project.<project>                           those of the project
//	forge.transcript.<project>.<intent>.…             lines of attempts
//	forge.dead.<stream>.<project>                     dead letters
//	$O.FORGE_TRANSCRIPTS.M.<base64 <project>/…>       whole transcripts, and their content

var (
	// readTokens matches a token of a subject that is no wildcard for several.
	readTokens = pattern.New(`^(\*|[A-Za-z0-9=_-]+)$`)
	// contents matches names of an object's content.
	contents = pattern.New(`^[A-Za-z0-9]{1,64}$`)
)

// parseRead reads a request. The error is an *errCode with every mistake. Fields that are not known
// are mistakes, too: a request that names a stream or a project is not half understood.
func parseRead(data []byte) (q conn.Read, err error) {
	if len(data) > maxReadRequest {
		return q, bad("", "has %d bytes; at most %d are allowed", len(data), maxReadRequest)
	}
	var since string
	err = readRequest(data, func(o *jsonobject.Object) {
		o.Text("read", &q.What)
		o.Text("subject", &q.Subject)
		o.Text("content", &q.Content)
		o.Read("after", &q.After, "a whole number that is not negative")
		o.Text("since", &since)
		o.Text("past", &q.Past)
		o.Read("wait", &q.Wait, "true or false")
		o.Only("read", "subject", "content", "after", "since", "past", "wait")
		if kinds := []string{conn.ReadLast, conn.ReadFirst, conn.ReadNext, conn.ReadLasts, conn.ReadIdle}; !slices.Contains(kinds, q.What) {
			o.AddError("read", fmt.Sprintf("is %q; it can be %s", q.What, strings.Join(kinds, ", ")))
		}
		if q.After >= 1<<62 {
			o.AddError("after", "is no sequence of a message")
		}
		if q.Content != "" && !contents.MatchString(q.Content) {
			o.AddError("content", "is no name of a content")
		}
		if q.Content != "" && q.What != conn.ReadNext {
			o.AddError("content", "is only for read: next")
		}
		if since != "" {
			var err error
			if q.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
				o.AddError("since", "is no time such as 2026-11-20T10:00:00Z")
			}
		}
	})
	return q, err
}

// place finds the stream of the subject, and refuses whatever is not of the project.
func (q *reading) place() error {
	if q.What == conn.ReadIdle {
		if q.Subject != "" {
			return bad("subject", "is not for read: idle")
		}
		return nil
	}
	q.bucket = streams.BucketTranscripts
	if rest, ok := strings.CutPrefix(q.Subject, strings.TrimSuffix(q.bucket.Metas(), ">")); ok {
		return q.placeObject(rest)
	}
	q.bucket = ""
	t := strings.Split(q.Subject, ".")
	if len(t) < 3 || t[0] != "forge" || slices.ContainsFunc(t, func(s string) bool { return !readTokens.MatchString(s) }) {
		return bad("subject", "is %q, which is no subject of a project's journals, transcripts, dead letters or objects", q.Subject)
	}
	known := map[string]struct {
		stream string
		tokens int
	}{"journal": {streams.Journal, 4}, "project": {streams.Projects, 3}, "transcript": {streams.Transcripts, 8}, "dead": {streams.Dead, 4}}[t[1]]
	if known.stream == "" || known.tokens != len(t) || q.Content != "" {
		return bad("subject", "is %q, which is no subject of a project's journals, transcripts, dead letters or objects", q.Subject)
	}
	if of, ok := subjects.ProjectOf(q.Subject); !ok || of != q.project {
		return bad("subject", "is %q, which is not of project %q", q.Subject, q.project)
	}
	q.stream = known.stream
	return nil
}

// placeObject is place for the name of an object, or for all. Content is read by the object's name
// alone: the content has to be the one that the object has now, since its own subject names no
// project.
func (q *reading) placeObject(rest string) error {
	q.stream = q.bucket.Stream()
	if rest == ">" && q.What == conn.ReadLasts {
		return nil
	}
	if q.What != conn.ReadLast && (q.What != conn.ReadNext || q.Content == "") {
		return bad("read", "is %q; of an object it can be last, or next with its content", q.What)
	}
	if !q.mine(q.Subject) {
		return bad("subject", "is %q, which names no transcript of project %q", q.Subject, q.project)
	}
	return nil
}

// mine reports whether the subject of a message is of the project. Each message is checked again
// before it is sent, whatever the request was taken for.
func (q *reading) mine(subject string) bool {
	if q.bucket != "" {
		name, ok := objects.Named(q.bucket, subject)
		return ok && name.Project == q.project
	}
	of, ok := subjects.ProjectOf(subject)
	return ok && of == q.project
}

package requests

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document/whole"
)

// Packed is an answer that is often larger than a message of the server's may be.
type Packed struct {
	// Gzip is the compressed JSON of a whole.Answer.
	Gzip []byte `json:"gzip"`
}

// packedRoom is how much of a message is left for what is not compressed, in bytes.
const packedRoom = 1 << 10

// whole answers with a whole.Answer, packed. A list that does not fit is cut; an intent that does not is refused.
func (e *endpoints) whole(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var req whole.Request
	if err := readRequest(r.Data(), func(o *jsonobject.Object) { o.Fill(&req) }); err != nil {
		return nil, err
	}
	most := (int(e.conn.NC.MaxPayload()) - packedRoom) / 4 * 3 // it is sent as base64
	if req.Intent == "" {
		return e.wholeList(ctx, from.Project, req.After, most)
	}
	key := forge.Key{Project: from.Project, Intent: req.Intent}
	var d whole.Intent
	err := e.readLarge(ctx, 1, key, func() error {
		var records []forge.Record
		var err error
		if d, records, err = e.cfg.Whole(ctx, key); err != nil {
			return err
		}
		for i := range records[min(req.Records, len(records)):] {
			data, err := wire.Records.Marshal(&records[req.Records+i])
			if err != nil {
				return err
			}
			d.Records = append(d.Records, base64.StdEncoding.EncodeToString(data))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	packed, err := pack(whole.Answer{Intent: &d})
	if err == nil && len(packed.Gzip) > most {
		err = &errCode{"409", []RefusedField{{"intent", "is too large to be answered as a whole; show and timeline tell it by page"}}}
	}
	return packed, err
}

// wholeList answers with as many intents of a project as a message has room for.
func (e *endpoints) wholeList(ctx context.Context, project forge.ProjectID, after forge.IntentID, most int) (any, error) {
	all, err := e.lists.Summaries(ctx, project)
	if err != nil {
		return nil, err
	}
	projects, err := e.submissions.journal.ProjectSummaries(ctx, project)
	if err != nil {
		return nil, err
	}
	l := whole.ListOf(all, projects, after)
	for {
		packed, err := pack(whole.Answer{List: &l})
		if err != nil || len(packed.Gzip) <= most {
			return packed, err
		}
		if !l.Halve() {
			return nil, &errCode{"409", []RefusedField{{"", "an intent is too large to be listed as a whole"}}}
		}
	}
}

// pack compresses an answer.
func pack(a whole.Answer) (Packed, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return Packed{}, err
	}
	if len(data) > whole.MaxBytes {
		return Packed{}, &errCode{"409", []RefusedField{{"intent", fmt.Sprintf("has %d bytes, and an answer %d", len(data), whole.MaxBytes)}}}
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(data)
	err = errors.Join(err, w.Close()) // which writes the rest
	return Packed{b.Bytes()}, err
}

// Whole asks a runner for an intent or the list of all as a whole, as List does, and returns the JSON of a
// whole.Answer, of at most whole.MaxBytes.
func (ss *Submissions) Whole(ctx context.Context, project forge.ProjectID, gateway string, req whole.Request) (json.RawMessage, error) {
	data, err := ss.look(ctx, project, gateway, subjects.VerbWhole, req)
	if err != nil {
		return nil, err
	}
	var p Packed
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(p.Gzip))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, whole.MaxBytes+1))
	if err == nil && len(text) > whole.MaxBytes {
		err = fmt.Errorf("a runner answers with more than %d bytes", whole.MaxBytes)
	}
	return text, err
}

// RecordsOf reads the records of a whole.Intent. What a newer version has written is read as far as this one knows it.
func RecordsOf(d *whole.Intent) ([]forge.Record, error) {
	list := make([]forge.Record, len(d.Records))
	for i, text := range d.Records {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("records[%d]: %w", i, err)
		}
		list[i] = wire.ReadKnown(data)
	}
	return list, nil
}

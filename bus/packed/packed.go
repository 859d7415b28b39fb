// Package packed puts the documents of package whole into messages of the bus,
// and takes them out again.
//
// A document of an intent with a long past has some megabytes of JSON, and a message
// of NATS may have one. The texts in it are alike, so that it takes about a tenth of
// that when it is compressed. A list that still does not fit is cut into pages; an
// intent that does not is refused, and is told by the other requests, page by page.
//
// The records of an intent are in the binary format of the journal, which only
// package bus knows: a reader gets them from here.
package packed

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/plainjson"
)

// Packed is a compressed document, as it is answered by a runner.
type Packed struct {
	// Gzip is the compressed JSON of a whole.Answer.
	Gzip []byte `json:"gzip"`
}

// room bounds the compressed JSON, in bytes: as base64, and with the kilobyte
// that is left for what is around it, it fits into a message of one megabyte,
// which servers take unless they are told otherwise.
const room = 767 << 10

// ErrLarge says that an intent is too large to be answered as a whole.
var ErrLarge = errors.New("is too large to be answered as a whole; show and timeline tell it by page")

// Intent packs an intent with those of its records that are not known yet. No
// more of them are asked for than there is room for. Error: ErrLarge.
func Intent(d *whole.Intent, records iter.Seq[forge.Record], known int) (Packed, error) {
	size := 0
	for r := range records {
		if known--; known >= 0 {
			continue
		}
		data, err := wire.Records.Marshal(&r)
		if err != nil {
			return Packed{}, err
		}
		d.Records = append(d.Records, base64.StdEncoding.EncodeToString(data))
		if size += base64.StdEncoding.EncodedLen(len(data)); size > whole.MaxBytes {
			return Packed{}, ErrLarge
		}
	}
	return pack(whole.Answer{Intent: d})
}

// List packs as many intents of a list as there is room for. Error: ErrLarge
// for one that does not fit alone.
func List(l whole.List) (Packed, error) {
	for {
		p, err := pack(whole.Answer{List: &l})
		// Half of the intents take about half of the room.
		if !errors.Is(err, ErrLarge) || !l.Halve() {
			return p, err
		}
	}
}

// pack compresses an answer.
func pack(a whole.Answer) (Packed, error) {
	data, err := a.JSON()
	if errors.Is(err, plainjson.ErrLong) {
		return Packed{}, ErrLarge
	}
	if err != nil {
		return Packed{}, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(data)
	err = errors.Join(err, w.Close()) // which writes the rest
	if err == nil && b.Len() > room {
		err = ErrLarge
	}
	return Packed{b.Bytes()}, err
}

// Open returns the JSON of the whole.Answer in an answer of a runner, of at most whole.MaxBytes.
func Open(answer []byte) (json.RawMessage, error) {
	var p Packed
	if err := json.Unmarshal(answer, &p); err != nil {
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

// Records reads the records of an intent. Of those that a newer version has
// written, the fields that are known are read.
func Records(d *whole.Intent) ([]forge.Record, error) {
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

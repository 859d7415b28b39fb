package records

import (
	"bytes"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Notebook keeps observations.yaml: entries in the order in which they came. An
// intent's observations stay in their order; only their processed mark changes.
type Notebook struct {
	Disk  *disk.Disk
	Files *projection.Files

	entries []observation // as the file has them
	loaded  bool
}

// observation is one entry of the file.
type observation struct {
	intent forge.IntentID
	text   []byte
}

// Forget has the file read again before it is written.
func (n *Notebook) Forget() { n.entries, n.loaded = nil, false }

// Target returns the file in which an intent has exactly these observations, or nil if
// that is the file in place. Once it is written, call keep.
func (n *Notebook) Target(id forge.IntentID, list []forge.Observation) (target *projection.Target, keep func(), err error) {
	if err := n.load(); err != nil {
		return nil, nil, err
	}
	entries, changed, err := n.with(id, list)
	if err != nil {
		return nil, nil, err
	}
	if missing := len(entries) > 0 && !n.Files.IsCurrent(layout.Observations); changed || missing {
		var b bytes.Buffer
		for _, e := range entries {
			b.Write(e.text)
		}
		target = &projection.Target{Path: layout.Observations, Content: b.Bytes()}
	}
	return target, func() { n.entries = entries }, nil
}

// load reads the file if it is ours. If it is not, all intents are written again, since
// only they together know its content.
func (n *Notebook) load() error {
	if n.loaded {
		return nil
	}
	data, _, err := n.Disk.Read(layout.Observations, disk.MaxOther)
	if err != nil || !n.Files.Wrote(layout.Observations, disk.DigestOf(data)) {
		n.entries = nil
		err := n.Files.Forget(layout.Observations)
		n.loaded = err == nil
		return err
	}
	var docs []ObservationDoc
	if _, err := strictyaml.Decode(data, &docs, strictyaml.Options{MaxBytes: disk.MaxOther}); err != nil {
		return fmt.Errorf("%s: %w", layout.Shown(layout.Observations), err)
	}
	n.entries = make([]observation, len(docs))
	for i := range docs {
		text, err := strictyaml.Encode(docs[i : i+1])
		if err != nil {
			return err
		}
		n.entries[i] = observation{forge.IntentID(docs[i].IntentID), text}
	}
	n.loaded = true
	return nil
}

// with returns the entries after which an intent has exactly these observations, and
// whether that changes anything.
func (n *Notebook) with(id forge.IntentID, list []forge.Observation) (out []observation, changed bool, err error) {
	next := 0
	for _, e := range n.entries {
		if e.intent == id {
			if next == len(list) {
				changed = true
				continue
			}
			text, err := encodeObservation(id, list[next])
			if err != nil {
				return nil, false, err
			}
			next++
			changed = changed || !bytes.Equal(text, e.text)
			e.text = text
		}
		out = append(out, e)
	}
	for ; next < len(list); next++ {
		text, err := encodeObservation(id, list[next])
		if err != nil {
			return nil, false, err
		}
		out = append(out, observation{id, text})
		changed = true
	}
	return out, changed, nil
}

// encodeObservation returns an entry. Its intent is the one whose view it came in.
func encodeObservation(id forge.IntentID, o forge.Observation) ([]byte, error) {
	o.IntentID = id
	return strictyaml.Encode([]ObservationDoc{observationDocOf(&o)})
}

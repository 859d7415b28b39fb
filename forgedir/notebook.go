package forgedir

import (
	"bytes"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// notebook is observations.yaml: entries in the order in which they came. An
// intent's observations stay in their order; only their processed mark changes.
type notebook struct {
	entries []note
}

type note struct {
	intent forge.IntentID
	text   []byte
}

// loadNotes reads observations.yaml as it was written here last.
func (w *Workspace) loadNotes() error {
	if w.notes != nil {
		return nil
	}
	n := &notebook{}
	data, _, err := w.read(observations, maxNotesBytes)
	if err == nil && w.index.ours(observations, digestOf(data)) {
		var docs []observationDoc
		if _, err := strictyaml.Decode(data, &docs, strictyaml.Options{MaxBytes: maxNotesBytes}); err != nil {
			return fmt.Errorf("%s: %w", shown(observations), err)
		}
		for i := range docs {
			text, err := strictyaml.Encode(docs[i : i+1])
			if err != nil {
				return err
			}
			n.entries = append(n.entries, note{forge.IntentID(docs[i].IntentID), text})
		}
	} else if err := w.forgetNotes(); err != nil {
		return err
	}
	w.notes = n
	return nil
}

// forgetNotes has every intent written again, since only they together know
// what stood in the file that all of them share.
func (w *Workspace) forgetNotes() error {
	w.notes = nil
	var lines []indexLine
	for id, seq := range w.index.seqs {
		if seq != 0 && w.index.knows(observations) {
			lines = append(lines, indexLine{Intent: id})
		}
	}
	return w.index.add(false, lines...)
}

// with returns the notebook in which an intent has exactly these observations,
// and whether that changes anything.
func (n *notebook) with(id forge.IntentID, list []forge.Observation) (*notebook, bool, error) {
	out := &notebook{}
	changed := false
	next := 0
	for _, e := range n.entries {
		if e.intent == id {
			if next == len(list) {
				changed = true
				continue
			}
			text, err := encodeNote(id, list[next])
			if err != nil {
				return nil, false, err
			}
			next++
			changed = changed || !bytes.Equal(text, e.text)
			e.text = text
		}
		out.entries = append(out.entries, e)
	}
	for ; next < len(list); next++ {
		text, err := encodeNote(id, list[next])
		if err != nil {
			return nil, false, err
		}
		out.entries = append(out.entries, note{id, text})
		changed = true
	}
	return out, changed, nil
}

func encodeNote(id forge.IntentID, o forge.Observation) ([]byte, error) {
	o.IntentID = id
	return strictyaml.Encode([]observationDoc{observationDocOf(&o)})
}

func (n *notebook) bytes() []byte {
	var b bytes.Buffer
	for _, e := range n.entries {
		b.Write(e.text)
	}
	return b.Bytes()
}

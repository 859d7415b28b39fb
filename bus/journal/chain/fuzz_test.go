package chain

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzRef: what is taken for a reference or a hash is written as it was read.
func FuzzRef(f *testing.F) {
	f.Add(Ref{"forge.journal.p.i", 3, Hash{1}}.String())
	f.Add(Hash{}.String())
	f.Add("forge.project.p@+1:" + Hash{}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRef(s); err == nil && r.String() != s {
			t.Errorf("%q became %q", s, r)
		}
		if h, err := ParseHash(s); err == nil && h.String() != s {
			t.Errorf("%q became %q", s, h)
		}
	})
}

// FuzzCheckpoint: a checkpoint that is taken names journals that can be compared, and is the same
// after it was written again.
func FuzzCheckpoint(f *testing.F) {
	c := Checkpoint{Version: checkpointVersion, Heads: []Ref{{"forge.journal.p.i", 3, Hash{1}}}}
	data, err := c.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"heads":[{}]}`))
	f.Add([]byte(`{"version":1,"Version":1,"at":"0000-01-01T00:00:00Z","heads":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCheckpoint(data)
		if err != nil {
			return
		}
		for _, h := range c.Heads {
			if _, err := ParseRef(h.String()); err != nil {
				t.Errorf("a head that no record can name: %v", err)
			}
		}
		out, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCheckpoint(out)
		if err != nil || !reflect.DeepEqual(again.Heads, c.Heads) || !again.At.Equal(c.At) {
			t.Errorf("it changed on the way (%v):\n%+v\n%+v", err, c, again)
		}
		if last, err := again.Encode(); err != nil || !bytes.Equal(last, out) {
			t.Errorf("written twice: %v\n%s\n%s", err, out, last)
		}
	})
}

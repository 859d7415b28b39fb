package journal

import (
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// FuzzAside: nothing is both a mark that sets a message aside and a record, for
// any version: whoever goes by one does not go by the other.
func FuzzAside(f *testing.F) {
	f.Add([]byte(`{"set_aside":{"sequence":3,"hash":"00","by":"ada","why":"w","at":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"set_aside":null}`))
	f.Add([]byte(`{"set_aside":{}}{"set_aside":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := conn.Stored{Subject: "forge.journal.shop.a", Seq: 2, Data: data}
		a := readAside(m)
		_, err := readRecord(m)
		if _, garbage := errors.AsType[*wire.GarbageError](err); a != nil && !garbage {
			t.Errorf("%q is a mark, and as a record: %v", data, err)
		}
		if m.Relayed = true; readAside(m) != nil {
			t.Error("a copy sets something aside")
		}
		if mark := markOf(conn.Stored{Subject: m.Subject, Seq: 1}, m); mark != nil {
			t.Error("a copy is taken for a mark")
		}
	})
}

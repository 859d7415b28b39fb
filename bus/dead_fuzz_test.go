package bus

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// FuzzDead: workers put letters among the dead ones, and the server advisories:
// each is read with a reason, or is none.
func FuzzDead(f *testing.F) {
	f.Add([]byte(`{"stream":"FORGE_INTENTS","stream_seq":3,"deliveries":5}`), "", "")
	f.Add([]byte("\x0a\x01x"), "not a valid Command", "7")
	f.Add([]byte(`{"stream_seq":-1}`), "", "-1")
	f.Fuzz(func(t *testing.T, data []byte, reason, seq string) {
		m := conn.Stored{Subject: "forge.dead.commands.shop", Seq: 1, Data: data, Header: nats.Header{"Nats-Time-Stamp": {"2026-01-02T03:04:05Z"}}}
		m.Header.Set(wire.HeaderReason, reason)
		m.Header.Set(wire.HeaderSequence, seq)
		d, err := readDead(m)
		if err == nil && (d.Reason == "" || d.At.IsZero()) {
			t.Errorf("%q is %+v", data, d)
		}
	})
}

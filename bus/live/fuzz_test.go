package live

import (
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
)

// FuzzCleaned: what implementers tell the others to remove has a project and intents that are ids.
func FuzzCleaned(f *testing.F) {
	f.Add("forge.cleaned.shop", []byte(`{"intents":["a"]}`))
	f.Add("forge.cleaned.*", []byte(`{"intents":["../x"]}`))
	f.Add("forge.cleaned.shop.x", []byte(`null`))
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		project, intents, err := parseCleaned(&nats.Msg{Subject: subject, Data: data})
		if err != nil {
			return
		}
		if _, err := forge.ParseProjectID(string(project)); err != nil {
			t.Errorf("%q: %v", subject, err)
		}
		for _, id := range intents {
			if _, err := forge.ParseIntentID(string(id)); err != nil {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}

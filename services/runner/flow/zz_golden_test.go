package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

func TestZZGolden(t *testing.T) {
	out := os.Getenv("ZZ_OUT")
	if out == "" {
		t.Skip()
	}
	f, _ := os.Create(out)
	defer f.Close()
	for seed := uint64(1); seed <= 1000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		key := forge.Key{Project: "p", Intent: "a"}
		s, l := NewIntent(key), NewLane(key.Lane())
		at := time.Unix(0, 0).UTC()
		h := sha256.New()
		for i := range 200 {
			ev := anyEvent(rng, s, l)
			ev.ID, ev.To, ev.At = fmt.Sprint(i), key, at
			eff, ruling := s.Step(ev)
			d, e := json.Marshal([]any{ev, eff, ruling, s.Pending(), s.View()})
			if e != nil {
				t.Fatal(e)
			}
			h.Write(d)
			ev.To = key.Lane()
			ev.Actor = string(rune('a' + rng.IntN(3)))
			l.Step(ev)
		}
		fmt.Fprintln(f, seed, hex.EncodeToString(h.Sum(nil))[:16])
	}
}

package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

func TestZZGolden(t *testing.T) {
	out := os.Getenv("ZZ_OUT")
	if out == "" {
		t.Skip()
	}
	debug.SetGCPercent(2000)
	f, _ := os.Create(out)
	defer f.Close()
	for seed := uint64(1); seed <= 800; seed++ {
		w := newWorld(seed)
		w.populate()
		err := w.play()
		h := sha256.New()
		fmt.Fprint(h, err)
		for _, key := range w.keys {
			if key.IsLane() {
				continue
			}
			d, e := json.Marshal(w.journal[key])
			if e != nil {
				t.Fatal(e)
			}
			h.Write(d)
		}
		fmt.Fprintln(f, seed, hex.EncodeToString(h.Sum(nil))[:16])
	}
}

package signed

import (
	"crypto/ed25519"
	"crypto/sha256"
	"sync"

	"github.com/pfl-forge/pfl-forge/proof"
)

// maxOutcomes bounds the outcomes that are remembered.
const maxOutcomes = 512

// outcomes remembers whether signatures hold that come with more than one message: those
// over several messages, and those of certificates. To check one costs as much as a
// hundred hashes. An outcome is remembered by all that it depends on (key, signed text
// and signature), so it is the one that a check anew would have. Whose a key is, and for
// how long, is not remembered. The zero value is ready to use.
type outcomes struct {
	mu   sync.Mutex
	list map[sum]func() bool
}

// holds is p.Holds.
func (o *outcomes) holds(p *Proof) bool {
	if p.Place == nil {
		return p.Holds()
	}
	if len(p.Key) != ed25519.PublicKeySize {
		return false
	}
	text := p.gatheredText()
	return o.of(sha256.Sum256(lengthened([]string{"messages", string(p.Key), string(text), string(p.Signature)})), func() bool {
		return ed25519.Verify(p.Key, text, p.Signature)
	})
}

// certifies is c.Holds.
func (o *outcomes) certifies(c *proof.Certificate) bool {
	return o.of(sha256.Sum256(lengthened([]string{"certificate", c.String()})), c.Holds)
}

// of returns the outcome by a hash, which check finds out unless it is remembered. Of
// several that ask for one outcome at the same time one checks, and the others wait.
func (o *outcomes) of(by sum, check func() bool) bool {
	o.mu.Lock()
	got := o.list[by]
	if got == nil {
		if len(o.list) >= maxOutcomes || o.list == nil {
			o.list = map[sum]func() bool{} // forgets, so that it never grows beyond
		}
		got = sync.OnceValue(check)
		o.list[by] = got
	}
	o.mu.Unlock()
	return got()
}

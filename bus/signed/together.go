package signed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// MaxTogether bounds the messages that one signature is over.
const MaxTogether = 32

const (
	// rootDomain begins the text that is signed for several messages.
	rootDomain = "pfl-forge signed messages v3"
	// depth is how many hashes lead from one of MaxTogether messages to the root.
	depth = 5
	// saltSize is the length of a salt, in bytes.
	saltSize = 16
)

// The first byte of what is hashed tells a message from an inner node of the tree.
const (
	leafMark = 0
	nodeMark = 1
)

// sum is a node of a tree of hashes.
type sum = [sha256.Size]byte

// Place says which of several messages a proof is about: the way from the message to
// the root of a tree of hashes, whose root is signed.
type Place struct {
	// Salt is random and hashed with the message, so that whoever reads one message
	// cannot guess those that were signed with it.
	Salt [saltSize]byte
	// Turns has a bit for each hash of Beside, the lowest for the first; 1 says
	// that the hash is on the left.
	Turns byte
	// Beside are the hashes that the message is joined with one after the other.
	Beside []sum
}

// Together reports whether the value of a header is a proof of one of several
// messages that were signed together.
func Together(text string) bool { return strings.HasPrefix(text, gathered+" ") }

// gather sets the places of proofs in a tree of hashes. A node that is left
// over on a level goes to the next.
func gather(proofs []Proof) {
	type node struct {
		hash   sum
		leaves []*Place
	}
	level := make([]node, len(proofs))
	for i := range proofs {
		p := &proofs[i]
		p.Place = &Place{}
		_, _ = rand.Read(p.Place.Salt[:]) // it never fails
		level[i] = node{p.leaf(), []*Place{p.Place}}
	}
	for len(level) > 1 {
		var next []node
		for pair := range slices.Chunk(level, 2) {
			if len(pair) == 1 {
				next = append(next, pair[0])
				continue
			}
			left, right := pair[0], pair[1]
			for _, l := range left.leaves {
				l.Beside = append(l.Beside, right.hash)
			}
			for _, l := range right.leaves {
				l.Turns |= 1 << len(l.Beside)
				l.Beside = append(l.Beside, left.hash)
			}
			next = append(next, node{join(left.hash, right.hash), slices.Concat(left.leaves, right.leaves)})
		}
		level = next
	}
}

// leaf returns the hash of what the proof says of its message.
func (p *Proof) leaf() sum {
	return sha256.Sum256(slices.Concat([]byte{leafMark}, p.Place.Salt[:], p.content()))
}

// join returns the hash of an inner node.
func join(left, right sum) sum {
	return sha256.Sum256(slices.Concat([]byte{nodeMark}, left[:], right[:]))
}

// gatheredText returns the text that the signature over several messages is over: the
// root of the tree to which the place of this one leads, and the key.
func (p *Proof) gatheredText() []byte {
	root := p.leaf()
	for i, h := range p.Place.Beside {
		if p.Place.Turns>>i&1 == 1 {
			root = join(h, root)
		} else {
			root = join(root, h)
		}
	}
	return lengthened([]string{rootDomain, string(root[:]), string(p.Key)})
}

// String returns salt, turns and hashes one after the other, in base64 as in URLs,
// without padding.
func (pl *Place) String() string {
	b := append(slices.Clone(pl.Salt[:]), pl.Turns)
	for _, h := range pl.Beside {
		b = append(b, h[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePlace is the reverse of String, for places among 2 to MaxTogether messages.
func parsePlace(text string) (*Place, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	hashes := len(b) - saltSize - 1
	if err != nil || hashes < 1 || hashes%sha256.Size != 0 || hashes > depth*sha256.Size || b[saltSize]>>(hashes/sha256.Size) != 0 {
		return nil, errors.New("it has no place among the messages that were signed together")
	}
	pl := &Place{Salt: [saltSize]byte(b), Turns: b[saltSize]}
	for h := range slices.Chunk(b[saltSize+1:], sha256.Size) {
		pl.Beside = append(pl.Beside, sum(h))
	}
	return pl, nil
}

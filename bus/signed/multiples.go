package signed

import (
	"crypto/ed25519"
	"crypto/sha512"
	"crypto/subtle"
	"sync"
	"sync/atomic"

	"filippo.io/edwards25519"
)

// To check a signature is to compute [S]B - [k]A and to compare it with the R of the signature. For a key that is not
// known beforehand, most of that is 250 doublings of points. The few keys of an installation's services sign nearly
// everything that a runner reads. For these, the multiples of A that can be needed are worked out once, and a check is
// 64 additions: a third of the time. It accepts what crypto/ed25519 accepts, and nothing else.

const (
	// busy is how many signatures of a key are checked before its multiples are worked out, which takes as long as
	// some twenty checks.
	busy = 64
	// maxTables bounds the keys that have multiples, each of 640 KiB. Others are checked by crypto/ed25519.
	maxTables = 32
)

// table has the multiples of a point: [j+1][256^i]P at i and j.
type table [32][128]edwards25519.Point

// newTable works out the multiples of a point.
func newTable(p *edwards25519.Point) *table {
	t := new(table)
	base := new(edwards25519.Point).Set(p)
	for i := range t {
		row := &t[i]
		row[0].Set(base)
		for j := 1; j < len(row); j++ {
			row[j].Add(&row[j-1], base)
		}
		base.Add(&row[127], &row[127])
	}
	return t
}

// addTo adds the multiple of the point by a scalar, of 32 bytes and less than 2^253, to a sum. Its digits are from
// -127 to 128. The time tells the scalar, which is no secret in a signature.
func (t *table) addTo(sum *edwards25519.Point, scalar []byte) {
	// A digit above 128 is one less than that of the next place, so that half of the multiples are enough: the
	// others are their negatives.
	carry := 0
	for i := range t {
		digit := int(scalar[i]) + carry
		carry = 0
		if digit > 128 {
			digit, carry = digit-256, 1
		}
		switch {
		case digit > 0:
			sum.Add(sum, &t[i][digit-1])
		case digit < 0:
			sum.Subtract(sum, &t[i][-digit-1])
		}
	}
}

// generator returns the multiples of B, which are the same for all keys.
var generator = sync.OnceValue(func() *table { return newTable(edwards25519.NewGeneratorPoint()) })

// multiples checks the signatures of one key.
type multiples struct {
	key  ed25519.PublicKey
	uses atomic.Int64
	// minus has the multiples of -A; nil until they are worked out.
	minus atomic.Pointer[table]
}

// prepare works out the multiples. A key that is no point has none: nothing holds by it.
func (m *multiples) prepare() {
	a, err := new(edwards25519.Point).SetBytes(m.key)
	if err != nil {
		return
	}
	generator()
	m.minus.Store(newTable(a.Negate(a)))
}

// verify reports whether a signature is one of the key over a text, as ed25519.Verify does.
func (m *multiples) verify(text, signature []byte) bool {
	t := m.minus.Load()
	if t == nil {
		return ed25519.Verify(m.key, text, signature)
	}
	if len(signature) != ed25519.SignatureSize {
		return false
	}
	r, s := signature[:32], signature[32:]
	// An S that is too great by the order of the group would make a second signature of each.
	if _, err := new(edwards25519.Scalar).SetCanonicalBytes(s); err != nil {
		return false
	}
	// k is the hash of R, the key and the text, as a number below the order of the group.
	hash := sha512.New()
	for _, part := range [][]byte{r, m.key, text} {
		_, _ = hash.Write(part) // it returns no error
	}
	k, err := new(edwards25519.Scalar).SetUniformBytes(hash.Sum(nil))
	if err != nil {
		return false
	}
	// Compared is the one form that a point has when it is written, as crypto/ed25519 does: an R in another form
	// holds there for no signature, and so for none here.
	sum := edwards25519.NewIdentityPoint()
	generator().addTo(sum, s)
	t.addTo(sum, k.Bytes())
	return subtle.ConstantTimeCompare(sum.Bytes(), r) == 1
}

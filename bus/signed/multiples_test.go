package signed

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"testing"

	"filippo.io/edwards25519"
)

// prepared returns what checks the signatures of a key, with its multiples.
func prepared(key ed25519.PublicKey) *multiples {
	m := &multiples{key: key}
	m.prepare()
	return m
}

// smallOrder are points of small order, in every form that is read, also those that are never written.
var smallOrder = []string{
	"0100000000000000000000000000000000000000000000000000000000000000", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"0000000000000000000000000000000000000000000000000000000000000080", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"0000000000000000000000000000000000000000000000000000000000000000", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"0100000000000000000000000000000000000000000000000000000000000080", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// dishonest returns a key and a signature as the owner of the key can make them who bends the rules: small is added
// to the key, and other to R.
func dishonest(t *testing.T, text []byte, small, other *edwards25519.Point) (ed25519.PublicKey, []byte) {
	t.Helper()
	scalar := func(parts ...[]byte) *edwards25519.Scalar {
		sum := sha512.Sum512(bytes.Join(parts, nil))
		s, err := new(edwards25519.Scalar).SetUniformBytes(sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	secret, nonce := scalar([]byte("secret")), scalar([]byte("nonce"), text)
	public := new(edwards25519.Point).ScalarBaseMult(secret)
	key := public.Add(public, small).Bytes()
	point := new(edwards25519.Point).ScalarBaseMult(nonce)
	r := point.Add(point, other).Bytes()
	return key, append(r, new(edwards25519.Scalar).MultiplyAdd(scalar(r, key, text), secret, nonce).Bytes()...)
}

// TestMultiples: with the multiples of a key, exactly the signatures hold that hold by crypto/ed25519, whatever the
// owner of the key has made up. Else a runner would believe what audit-log verify denies later.
func TestMultiples(t *testing.T) {
	held := map[bool]int{}
	same := func(name string, key ed25519.PublicKey, text, signature []byte) {
		t.Helper()
		want := ed25519.Verify(key, text, signature)
		held[want]++
		if got := prepared(key).verify(text, signature); got != want {
			t.Errorf("%s: holds %v, and %v by crypto/ed25519: key %x, signature %x, text %q", name, got, want, key, signature, text)
		}
	}
	var points []*edwards25519.Point
	for _, text := range smallOrder[:8] {
		raw, _ := hex.DecodeString(text)
		p, err := new(edwards25519.Point).SetBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, p)
	}
	for i, small := range points {
		for j, other := range points {
			text := fmt.Appendf(nil, "%d and %d", i, j)
			key, signature := dishonest(t, text, small, other)
			same("mixed order", key, text, signature)
		}
	}
	for _, a := range smallOrder {
		key, _ := hex.DecodeString(a)
		for _, b := range smallOrder {
			r, _ := hex.DecodeString(b)
			same("small order", key, []byte(b), append(r, make([]byte, 32)...))
		}
	}
	if held[true] == 0 || held[false] == 0 {
		t.Errorf("%d signatures hold and %d do not: nothing is compared", held[true], held[false])
	}
}

// TestMultiplesOfLimits: the least and the greatest digits of scalars, ones that are too great, and signatures and keys of
// other lengths.
func TestMultiplesOfLimits(t *testing.T) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key := private.Public().(ed25519.PublicKey)
	m := prepared(key)
	text := []byte("text")
	good := ed25519.Sign(private, text)
	if !m.verify(text, good) || m.verify([]byte("another"), good) {
		t.Fatal("a true signature does not hold, or one of another text does")
	}
	for i := range good {
		bent := bytes.Clone(good)
		bent[i] ^= 0x80
		if m.verify(text, bent) {
			t.Errorf("a signature with another byte %d holds", i)
		}
	}
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry, above := 0, bytes.Clone(good)
	for i := range order { // S and S plus the order of the group are the same multiple
		sum := int(good[32+i]) + int(order[i]) + carry
		above[32+i], carry = byte(sum), sum>>8
	}
	for _, signature := range [][]byte{nil, good[:63], append(bytes.Clone(good), 0), above} {
		if m.verify(text, signature) {
			t.Errorf("a signature of %d bytes holds: %x", len(signature), signature)
		}
	}
	for _, digit := range []byte{0x00, 0x01, 0x7f, 0x80, 0x81, 0xff} {
		scalar := bytes.Repeat([]byte{digit}, 32)
		scalar[31] &= 0x0f
		s, err := new(edwards25519.Scalar).SetCanonicalBytes(scalar)
		if err != nil {
			t.Fatal(err)
		}
		got := edwards25519.NewIdentityPoint()
		generator().addTo(got, scalar)
		if want := new(edwards25519.Point).ScalarBaseMult(s); got.Equal(want) != 1 {
			t.Errorf("the multiple by digits of %#x is wrong", digit)
		}
	}
	noPoint := bytes.Repeat([]byte{0x02}, 32)
	if prepared(noPoint).verify(text, good) {
		t.Error("a signature holds by a key that is no point")
	}
}

// FuzzMultiples: whatever comes as a signature holds with the multiples of a key as it does by crypto/ed25519.
func FuzzMultiples(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key := private.Public().(ed25519.PublicKey)
	m := prepared(key)
	f.Add([]byte("text"), ed25519.Sign(private, []byte("text")))
	f.Add([]byte("text"), []byte("short"))
	f.Fuzz(func(t *testing.T, text, signature []byte) {
		own := ed25519.Sign(private, text)
		if !m.verify(text, own) {
			t.Errorf("a true signature of %q does not hold", text)
		}
		if got, want := m.verify(text, signature), ed25519.Verify(key, text, signature); got != want {
			t.Errorf("holds %v, and %v by crypto/ed25519", got, want)
		}
	})
}

// TestTablesAreBounded: only keys that sign much have multiples, a bounded number of them, and the next key has them when one
// of those is gone.
func TestTablesAreBounded(t *testing.T) {
	keys := &Keys{byKey: map[string]*known{}}
	sign := func(n byte, times int) *multiples {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
		p := Proof{Key: private.Public().(ed25519.PublicKey)}
		p.Signature = ed25519.Sign(private, p.content())
		if keys.byKey[string(p.Key)] == nil {
			keys.byKey[string(p.Key)] = &known{checks: &multiples{key: p.Key}}
		}
		for range times {
			if !keys.holds(&p) {
				t.Fatalf("the signature of key %d does not hold", n)
			}
		}
		return keys.byKey[string(p.Key)].checks
	}
	if sign(0, busy-1).minus.Load() != nil {
		t.Error("a key that signs little has multiples")
	}
	for n := range byte(maxTables) {
		if sign(n+1, busy).minus.Load() == nil {
			t.Fatalf("key %d of %d that sign much has no multiples", n+1, maxTables)
		}
	}
	if sign(maxTables+1, 2*busy).minus.Load() != nil {
		t.Errorf("more than %d keys have multiples", maxTables)
	}
	keys.set(nil)
	if sign(maxTables+1, busy).minus.Load() == nil {
		t.Error("a key has no multiples though no other has")
	}
}

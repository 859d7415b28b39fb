package signed_test

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
)

// decisions returns n messages of ada, the first of which is approval.
func decisions(n int) []*signed.Message {
	list := []*signed.Message{approval()}
	for i := range n - 1 {
		m := approval()
		m.Subject, m.ID, m.Payload = "forge.intent.shop.by.ada.cancel", fmt.Sprint("cancel/", i), fmt.Appendf(nil, "%d", i)
		list = append(list, m)
	}
	return list
}

// together returns the texts of proofs of messages that an account signs together.
func together(t testing.TB, k *proof.Key, list []*signed.Message) []string {
	t.Helper()
	texts, errs := signed.SignAll(k, list, made)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// TestTogether checks each of 1 to MaxTogether messages that were signed together:
// alone, and after the others, each is believed, and with the proof of another none is.
func TestTogether(t *testing.T) {
	for n := 1; n <= signed.MaxTogether; n++ {
		list := decisions(n)
		texts := together(t, key(t, "ada"), list)
		keys := signed.NewKeys(known(t))
		for i, m := range list {
			for j, text := range texts {
				p, err := keys.Check(m, []string{text}, made, ada)
				if (err == nil) != (i == j) || (i == j) && p.String() != text {
					t.Errorf("message %d of %d with proof %d: %v", i, n, j, err)
				}
			}
			p, err := signed.Parse(texts[i])
			if err != nil || !p.Holds() {
				t.Errorf("message %d of %d: %v", i, n, err)
			}
			if account, err := keys.Confirm(&p); account != "ada" || err != nil {
				t.Errorf("message %d of %d in a journal is from %q, %v", i, n, account, err)
			}
		}
	}
}

// TestFormTogether makes a signature over three messages by the words of the
// package comment alone, as a system in another language does.
func TestFormTogether(t *testing.T) {
	seed := []byte("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU") // of no account
	raw, err := hkdf.Key(sha256.New, seed, nil, "pfl-forge signing key v1: ada", ed25519.SeedSize)
	if err != nil {
		t.Fatal(err)
	}
	private := ed25519.NewKeyFromSeed(raw)
	public := private.Public().(ed25519.PublicKey)
	parts := func(list ...string) (text []byte) {
		for _, p := range list {
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(p))), p...)
		}
		return text
	}
	const at = "2026-11-20T10:00:00.000000123Z"
	list := decisions(3)
	var leaves [3][32]byte
	var salts [3]string
	for i, m := range list {
		salts[i] = strings.Repeat(string(rune('a'+i)), 16)
		content := sha256.Sum256(m.Payload)
		text := parts("pfl-forge signed message v3", m.Subject, m.ID, m.ContentType, at, string(content[:]), string(public))
		leaves[i] = sha256.Sum256(append([]byte("\x00"+salts[i]), text...))
	}
	node := func(left, right [32]byte) [32]byte {
		return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
	}
	first := node(leaves[0], leaves[1])
	root := node(first, leaves[2])
	signature := ed25519.Sign(private, parts("pfl-forge signed messages v3", string(root[:]), string(public)))
	places := [3][]byte{
		slices.Concat([]byte(salts[0]), []byte{0}, leaves[1][:], leaves[2][:]),
		slices.Concat([]byte(salts[1]), []byte{1}, leaves[0][:], leaves[2][:]),
		slices.Concat([]byte(salts[2]), []byte{1}, first[:]),
	}
	k, err := proof.Derive(seed, "ada")
	if err != nil {
		t.Fatal(err)
	}
	keys := signed.NewKeys(proof.Signers{k.AccountSigner("operator")})
	url := base64.RawURLEncoding
	for i, m := range list {
		content := sha256.Sum256(m.Payload)
		alone := strings.Split(signedBy(t, "ada", m), " ")
		text := strings.Join([]string{
			"v3", alone[1], alone[2], alone[3], at, hex.EncodeToString(content[:]), url.EncodeToString(public), url.EncodeToString(signature),
			url.EncodeToString(places[i]),
		}, " ")
		if _, err := keys.Check(m, []string{text}, made, ada); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

// TestForgedTogether alters each part of the proof of a message that was signed
// with others, and makes up places: none is believed.
func TestForgedTogether(t *testing.T) {
	list := decisions(5)
	texts := together(t, key(t, "ada"), list)
	f := strings.Split(texts[0], " ")
	url := base64.RawURLEncoding
	place, err := url.DecodeString(f[8])
	if err != nil || len(place) != 17+3*32 {
		t.Fatal(len(place), err)
	}
	with := func(i int, field string) string {
		other := slices.Clone(f)
		other[i] = field
		return strings.Join(other, " ")
	}
	at := func(b []byte) string { return with(8, url.EncodeToString(b)) }
	flipped := func(i int) string {
		b := slices.Clone(place)
		b[i] ^= 1
		return at(b)
	}
	bob := together(t, key(t, "bob"), list)
	alone := strings.Split(signedBy(t, "ada", approval()), " ")
	// The last of five is joined with one hash, of the other four.
	last := strings.Split(texts[4], " ")
	up, err := url.DecodeString(last[8])
	if err != nil || len(up) != 17+32 {
		t.Fatal(len(up), err)
	}
	for _, a := range []struct{ name, text, want string }{
		{"another salt", flipped(0), "does not hold"},
		{"another turn", flipped(16), "does not hold"},
		{"another hash", flipped(17), "does not hold"},
		{"another hash at the end", flipped(len(place) - 1), "does not hold"},
		{"a hash less", at(place[:17+2*32]), "does not hold"},
		{"a hash more", at(append(slices.Clone(place), up[17:]...)), "does not hold"},
		{"the place of the last message", with(8, last[8]), "does not hold"},
		{"no place", strings.Join(f[:8], " "), "cannot be read"},
		{"an empty place", with(8, ""), "cannot be read"},
		{"a place without hashes", at(place[:17]), "cannot be read"},
		{"half a hash", at(place[:17+16]), "cannot be read"},
		{"six hashes", at(slices.Concat(place, place[17:])), "cannot be read"},
		{"a turn without a hash", at(append([]byte(string(place[:16])+"\x08"), place[17:]...)), "cannot be read"},
		{"padding", with(8, f[8]+"="), "cannot be read"},
		{"a certificate that is none", texts[0] + " c1", "cannot be read"},
		{"two fields more", texts[0] + " x y", "cannot be read"},
		{"as a message of its own", strings.Join(append([]string{"v1"}, f[1:8]...), " "), "does not hold"},
		{"a message of its own as one of several", strings.Join(append(append([]string{"v3"}, alone[1:]...), f[8]), " "), "does not hold"},
		{"the signature of another", with(7, strings.Split(bob[0], " ")[7]), "does not hold"},
		{"the key of another", with(6, strings.Split(bob[0], " ")[6]), "does not hold"},
		{"all of another", bob[0], "it was signed by bob and came as from ada"},
		{"a later time", with(4, "2026-11-20T10:00:01Z"), "does not hold"},
		{"another subject", with(1, "forge.intent.shop.by.ada.reject"), "was signed for"},
	} {
		keys := signed.NewKeys(known(t))
		for _, remembers := range []bool{false, true} {
			if remembers { // the true one was seen before
				if _, err := keys.Check(approval(), texts[:1], made, ada); err != nil {
					t.Fatal(err)
				}
			}
			_, err := keys.Check(approval(), []string{a.text}, made, ada)
			if e := signed.IsError(err); e == nil || !strings.Contains(e.Reason, a.want) || e.Kind != signed.Forged {
				t.Errorf("%s: got %+v, want %q", a.name, e, a.want)
			}
		}
	}
}

// TestTrustIsNotRemembered: a signature that was checked for one message counts
// for another only with what the file of keys says now.
func TestTrustIsNotRemembered(t *testing.T) {
	list := decisions(2)
	texts := together(t, key(t, "ada"), list)
	for name, a := range map[string]struct {
		taken time.Time
		from  signed.Author
	}{
		"another author":  {made, signed.Author{Namespace: proof.NamespaceAsk, Account: "bob"}},
		"another kind":    {made, signed.Author{Namespace: proof.NamespaceResult, Account: "ada"}},
		"an hour later":   {made.Add(time.Hour), ada},
		"an hour earlier": {made.Add(-time.Hour), ada},
	} {
		keys := signed.NewKeys(known(t))
		if _, err := keys.Check(list[0], texts[:1], made, ada); err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Check(list[1], texts[1:], a.taken, a.from); err == nil {
			t.Errorf("%s: it is believed", name)
		}
	}
}

// TestOutcomesAreBounded checks more signatures than are remembered, of
// messages that are sent again, and one that does not hold each time.
func TestOutcomesAreBounded(t *testing.T) {
	keys := signed.NewKeys(known(t))
	list := decisions(2)
	for range signed.MaxOutcomes + 2 {
		texts := together(t, key(t, "ada"), list) // other salts each time
		f := strings.Split(texts[0], " ")
		f[8] = strings.Split(texts[1], " ")[8]
		for range 2 {
			if _, err := keys.Check(list[0], texts[:1], made, ada); err != nil {
				t.Fatal(err)
			}
			if _, err := keys.Check(list[0], []string{strings.Join(f, " ")}, made, ada); err == nil {
				t.Fatal("a place of another message is believed")
			}
		}
		if n := keys.Remembered(); n > signed.MaxOutcomes {
			t.Fatalf("%d outcomes are remembered", n)
		}
	}
}

// TestLoginsTogether: messages of a login carry its certificate, in each of
// them, and are read with it alone.
func TestLoginsTogether(t *testing.T) {
	certified, keys := login(t)
	list := decisions(3)
	texts := together(t, certified, list)
	for i, m := range list {
		if _, err := keys.Check(m, texts[i:i+1], made, ada); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
		f := strings.Split(texts[i], " ")
		if _, err := keys.Check(m, []string{strings.Join(f[:9], " ")}, made, ada); err == nil {
			t.Error("a message is believed without the certificate that was signed with it")
		}
	}
}

// login returns a key that auth has certified as ada's, and the keys that trust auth.
func login(t *testing.T) (*proof.Key, *signed.Keys) {
	t.Helper()
	auth, own := key(t, "auth"), key(t, proof.LoginRole)
	c, err := proof.Certify(auth, proof.Certificate{
		Account: "ada", Login: "https://login.example", Connection: "U" + strings.Repeat("A", 55), Key: own.Public(),
		From: made.Add(-time.Hour), Until: made.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return own.Certified(&c), signed.NewKeys(append(known(t), auth.AccountSigner("auth")))
}

// TestTooLongTogether: a message that is too long to be signed fails alone.
func TestTooLongTogether(t *testing.T) {
	list := decisions(3)
	list[1].ID = strings.Repeat("/", 2000)
	texts, errs := signed.SignAll(key(t, "ada"), list, made)
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || texts[1] != "" {
		t.Fatal(texts, errs)
	}
	for _, i := range []int{0, 2} {
		if _, err := signed.NewKeys(known(t)).Check(list[i], texts[i:i+1], made, ada); err != nil {
			t.Error(err)
		}
	}
}

// FuzzTogether: no message but those that were signed together is believed, and each with its own
// text only. What is tried is a text of this process with a few characters in the place of others:
// each process of the fuzzer has other ones, since what is signed together has random bytes.
func FuzzTogether(f *testing.F) {
	list := decisions(3)
	texts := together(f, key(f, "ada"), list)
	keys := signed.NewKeys(known(f))
	f.Add(uint(0), uint(0), "")
	f.Add(uint(1), uint(strings.LastIndex(texts[1], " ")), " "+strings.Repeat("A", 43))
	f.Add(uint(2), uint(0), "v3 forge.intent.shop.by.ada.approve")
	f.Fuzz(func(t *testing.T, i, from uint, with string) {
		m, own := list[i%3], texts[i%3]
		at := int(from % uint(len(own)+1))
		text := own[:at] + with + own[min(at+len(with), len(own)):]
		got, err := signed.Parse(text)
		if err == nil && got.String() != text {
			t.Errorf("%q is read as %q", text, got.String())
		}
		_, err = keys.Check(m, []string{text}, made, ada)
		if (err == nil) != (text == own) {
			t.Errorf("%q for %+v: %v", text, m, err)
		}
		if err == nil && !got.Of(m.Payload) {
			t.Error("it is of another content")
		}
	})
}

// BenchmarkTogether signs eight results together, and checks each.
func BenchmarkTogether(b *testing.B) {
	k, keys := key(b, "ada"), signed.NewKeys(known(b))
	list := decisions(8)
	for b.Loop() {
		texts := together(b, k, list)
		for i, m := range list {
			if _, err := keys.Check(m, texts[i:i+1], made, ada); err != nil {
				b.Fatal(err)
			}
		}
	}
}

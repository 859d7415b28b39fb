package proof_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/proof"
)

// edited returns an envelope with another payload and the same signature.
func edited(t *testing.T, e forge.Envelope, from, to string) forge.Envelope {
	t.Helper()
	s, err := proof.Unseal(e)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(s.Payload), from, to, 1)
	return forge.Envelope(strings.Replace(string(e), base64.StdEncoding.EncodeToString(s.Payload), base64.StdEncoding.EncodeToString([]byte(changed)), 1))
}

// spliced returns an envelope with the signature of another one.
func spliced(t *testing.T, e, from forge.Envelope) forge.Envelope {
	t.Helper()
	_, signature, ok := strings.Cut(string(from), `"sig":`)
	head, _, also := strings.Cut(string(e), `"sig":`)
	if !ok || !also {
		t.Fatal("no signature")
	}
	return forge.Envelope(head + `"sig":` + signature)
}

func sealed(t *testing.T, k *proof.Key, kind, payload string) forge.Envelope {
	t.Helper()
	e, err := k.Seal(kind, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An envelope has one form: whatever could be read in two ways is not read.
func TestEnvelopesHaveOneForm(t *testing.T) {
	good := string(newParty(t, "a").whole()[0])
	if _, err := proof.Unseal(forge.Envelope(good)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty":                "",
		"two payload types":    strings.Replace(good, `{"payloadType":`, `{"payloadType":"text/plain","payloadType":`, 1),
		"two payloads":         strings.Replace(good, `"signatures":`, `"payload":"aGVsbG8=","signatures":`, 1),
		"other letters":        strings.Replace(good, `"payload":`, `"Payload":"aGVsbG8=","payload":`, 1),
		"a field more":         strings.Replace(good, `{"payloadType":`, `{"x":1,"payloadType":`, 1),
		"a space":              " " + good,
		"something behind":     good + "{}",
		"escapes":              strings.Replace(good, "application", `\u0061pplication`, 1),
		"no signature":         before(good, `"signatures":`) + `"signatures":[]}`,
		"two signatures":       strings.Replace(good, `}]}`, `},{"keyid":"","sig":""}]}`, 1),
		"no padding":           strings.Replace(good, `=="}]}`, `"}]}`, 1),
		"a line end in base64": strings.Replace(good, `"payload":"`, `"payload":"\n`, 1),
		"null":                 "null",
		"a list":               "[]",
		"deep":                 strings.Repeat("[", 100_000),
		"huge":                 strings.Repeat(" ", 300_000),
	} {
		if bad == good {
			t.Errorf("%s: is the good one", name)
		}
		if _, err := proof.Unseal(forge.Envelope(bad)); err == nil {
			t.Errorf("%s: it was read: %.100s", name, bad)
		}
	}
}

// FuzzProofs looks for a text that is read and is not what would be written, or
// that ends the process.
func FuzzProofs(f *testing.F) {
	k, err := proof.Derive([]byte(strings.Repeat("a", 32)), "runner")
	if err != nil {
		f.Fatal(err)
	}
	e, err := k.State(change, planned(proof.OfPlan))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(e))
	f.Add(string(e) + "\n" + string(e))
	f.Add(`{"payloadType":"a","payloadType":"b","payload":"","signatures":[]}`)
	f.Add("{}\n[]\nnull")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := proof.Unbundle(text)
		if err != nil {
			return
		}
		for i := range list {
			about, p, err := list[i].Statement()
			if err != nil {
				continue
			}
			again, err := k.State(about, p)
			if err != nil {
				t.Fatal(err)
			}
			s, err := proof.Unseal(again)
			if err != nil || string(s.Payload) != string(list[i].Payload) {
				t.Errorf("%q was read as what is written as %q, %v", list[i].Payload, s.Payload, err)
			}
		}
	})
}

// FuzzSigners looks for a file that is read and is written otherwise.
func FuzzSigners(f *testing.F) {
	k, err := proof.Derive([]byte(strings.Repeat("a", 32)), "runner")
	if err != nil {
		f.Fatal(err)
	}
	one := k.Signer()
	f.Add(proof.Signers{one}.String())
	one.Until = made
	f.Add(proof.Signers{one, one}.String())
	f.Fuzz(func(t *testing.T, text string) {
		list, err := proof.ParseSigners(text)
		if err != nil {
			return
		}
		again, err := proof.ParseSigners(list.String())
		if err != nil || again.String() != list.String() {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}

// before returns the part of a text before another one.
func before(s, part string) string {
	s, _, _ = strings.Cut(s, part)
	return s
}

package signed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// made is when the messages of the tests are signed.
var made = time.Date(2026, 11, 20, 10, 0, 0, 123, time.UTC)

// key returns the key of an account.
func key(t testing.TB, account string) *proof.Key {
	t.Helper()
	k, err := proof.Derive([]byte(strings.Repeat(account+"-", 32)), account)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// known are the accounts in the file of keys.
func known(t testing.TB) proof.Signers {
	t.Helper()
	var list proof.Signers
	for _, a := range []struct{ account, role string }{
		{"runner", "runner"}, {"reviewer", "reviewer"}, {"implementer", "implementer"}, {"ada", "operator"}, {"bob", "operator"}, {"scanner", "submitter"},
	} {
		list = append(list, key(t, a.account).AccountSigner(a.role))
	}
	return list
}

// approval is what ada signs.
func approval() *signed.Message {
	return &signed.Message{
		Subject: "forge.intent.shop.by.ada.approve", ID: "approve/shop/fix login/1", ContentType: "application/json", Payload: []byte(`{"plan": "a"}`),
	}
}

// signedBy returns the text of an account's proof of a message.
func signedBy(t testing.TB, account string, m *signed.Message) string {
	t.Helper()
	p, err := signed.Sign(key(t, account), m, made)
	if err != nil {
		t.Fatal(err)
	}
	return p.String()
}

// ada is who has to have signed an approval.
var ada = signed.AuthorOf(subjects.Sender{Project: "shop", Person: true, Named: true, Name: "ada", Verb: "approve"})

// TestCheck alters each part of a signed message: one is believed, and each
// other is refused with a reason that says what is wrong.
func TestCheck(t *testing.T) {
	whole := signedBy(t, "ada", approval())
	fields := strings.Split(whole, " ")
	former := known(t).Renew(signerOf(t, "ada-new", "ada", "operator"), made.Add(-time.Hour))
	removed := known(t)[:3]
	replaced := func(i int, with string) string {
		f := append([]string(nil), fields...)
		f[i] = with
		return strings.Join(f, " ")
	}
	type attempt struct {
		name   string
		alter  func(*signed.Message)
		texts  []string
		taken  time.Time
		author signed.Author
		keys   proof.Signers
		want   string // empty: it is believed
		kind   signed.Kind
	}
	for _, a := range []attempt{
		{name: "as it was signed"},
		{name: "a stored one, read much later", taken: made.Add(9 * time.Minute)},
		{name: "a clock that is ahead", taken: made.Add(-9 * time.Minute)},
		{
			name: "another person's subject", alter: func(m *signed.Message) { m.Subject = "forge.intent.shop.by.bob.approve" },
			want: `was signed for "forge.intent.shop.by.ada.approve"`,
		},
		{name: "another verb", alter: func(m *signed.Message) { m.Subject = "forge.intent.shop.by.ada.reject" }, want: "was signed for"},
		{name: "another project", alter: func(m *signed.Message) { m.Subject = "forge.intent.bank.by.ada.approve" }, want: "was signed for"},
		{name: "another id", alter: func(m *signed.Message) { m.ID = "approve/shop/fix login/2" }, want: "was signed as message"},
		{name: "another type", alter: func(m *signed.Message) { m.ContentType = "" }, want: "was signed as content of type"},
		{name: "another content", alter: func(m *signed.Message) { m.Payload = []byte(`{"plan": "b"}`) }, want: "content is not the one"},
		{name: "no signature", texts: []string{}, want: "it is not signed: nothing proves that it is from ada"},
		{name: "two signatures", texts: []string{whole, whole}, want: "it has 2 signatures"},
		{name: "an empty one", texts: []string{""}, want: "cannot be read"},
		{name: "a huge one", texts: []string{strings.Repeat("v1 ", 1<<20)}, want: "cannot be read: it has 3145728 bytes"},
		{name: "another version", texts: []string{replaced(0, "v2")}, want: "cannot be read"},
		{name: "a field more", texts: []string{whole + " x"}, want: "cannot be read"},
		{name: "a subject that is written otherwise", texts: []string{replaced(1, "forge%2Eintent.shop.by.ada.approve")}, want: "cannot be read"},
		{name: "a time that is written otherwise", texts: []string{replaced(4, "2026-11-20T11:00:00.000000123+01:00")}, want: "cannot be read"},
		{name: "a short hash", texts: []string{replaced(5, "00")}, want: "cannot be read"},
		{name: "a short key", texts: []string{replaced(6, "AAAA")}, want: "cannot be read"},
		{name: "a short signature", texts: []string{replaced(7, "AAAA")}, want: "cannot be read"},
		{name: "another's signature", texts: []string{replaced(7, strings.Split(signedBy(t, "bob", approval()), " ")[7])}, want: "does not hold"},
		{name: "another's key", texts: []string{replaced(6, strings.Split(signedBy(t, "bob", approval()), " ")[6])}, want: "does not hold"},
		{name: "a later time", texts: []string{replaced(4, "2026-11-20T10:00:01Z")}, want: "does not hold"},
		{name: "signed by another person", texts: []string{signedBy(t, "bob", approval())}, want: "it was signed by bob and came as from ada"},
		{name: "signed by a worker", texts: []string{signedBy(t, "implementer", approval())}, want: "it was signed by implementer and came as from ada"},
		{name: "signed by the runner", texts: []string{signedBy(t, "runner", approval())}, want: "it was signed by runner and came as from ada"},
		{name: "as a result", author: signed.Author{Namespace: proof.NamespaceResult, Account: "ada"}, want: "may not sign result@pfl-forge, only ask@pfl-forge"},
		{name: "an unknown key", texts: []string{signedBy(t, "eve", approval())}, want: "not among the trusted keys", kind: signed.UnknownKey},
		{name: "the key of an account that was removed", keys: removed, want: "not among the trusted keys", kind: signed.UnknownKey},
		{name: "a key that was replaced", keys: former, want: "the key of ada was replaced on 2026-11-20T09:00:00Z", kind: signed.UnknownKey},
		{
			name: "a message that comes an hour later", taken: made.Add(time.Hour),
			want: "signed at 2026-11-20T10:00:00Z and came at 2026-11-20T11:00:00Z", kind: signed.Untimely,
		},
		{name: "a clock that is far ahead", taken: made.Add(-time.Hour), want: "or a clock is wrong", kind: signed.Untimely},
	} {
		m := approval()
		if a.alter != nil {
			a.alter(m)
		}
		if a.texts == nil {
			a.texts = []string{whole}
		}
		if a.taken.IsZero() {
			a.taken = made.Add(time.Second)
		}
		if a.author == (signed.Author{}) {
			a.author = ada
		}
		if a.keys == nil {
			a.keys = known(t)
		}
		p, err := signed.NewKeys(a.keys).Check(m, a.texts, a.taken, a.author)
		switch e := signed.IsError(err); {
		case a.want == "":
			if err != nil || p.String() != whole {
				t.Errorf("%s: %v, %s", a.name, err, p.String())
			}
		case e == nil || !strings.Contains(e.Reason, a.want) || e.Kind != a.kind:
			t.Errorf("%s: got %+v, want %q", a.name, e, a.want)
		case p.String() == whole:
			t.Errorf("%s: the proof is returned", a.name)
		}
	}
	if _, err := (*signed.Keys)(nil).Check(approval(), nil, made, ada); err != nil {
		t.Errorf("where nobody has keys: %v", err)
	}
}

// signerOf returns the line of a new key of an account.
func signerOf(t testing.TB, seed, account, role string) proof.Signer {
	t.Helper()
	k, err := proof.Derive([]byte(strings.Repeat(seed+"-", 32)), account)
	if err != nil {
		t.Fatal(err)
	}
	return k.AccountSigner(role)
}

// TestAuthors says whose signature a subject calls for: what a system sends
// counts as no person's, and a step's result is its service's.
func TestAuthors(t *testing.T) {
	for subject, want := range map[string]signed.Author{
		"forge.intent.shop.by.ada.approve":                  {Namespace: proof.NamespaceAsk, Account: "ada"},
		"forge.intent.shop.from.scanner.submit":             {Namespace: proof.NamespaceSubmit, Account: "scanner"},
		"forge.intent.shop.by.ada.via.gateway.approve":      {Namespace: proof.NamespaceVia, Account: "gateway"},
		"forge.intent.shop.from.scanner.via.gateway.submit": {Namespace: proof.NamespaceVia, Account: "gateway"},
		"forge.intent.shop.submit":                          {Namespace: proof.NamespaceRelay, Account: "runner"},
	} {
		from, err := subjects.ParseIntent(subject)
		if got := signed.AuthorOf(from); err != nil || got != want {
			t.Errorf("%s: %+v, %v", subject, got, err)
		}
	}
	for _, step := range forge.Steps() {
		namespace := proof.NamespaceResult
		if step == forge.StepOpenPull || step == forge.StepMergePull {
			namespace = proof.NamespaceVia
		}
		if got := signed.WorkerOf(step); got != (signed.Author{Namespace: namespace, Account: step.Service()}) {
			t.Errorf("%s: %+v", step, got)
		}
	}
}

// TestKeysFollowTheirFile replaces the file of keys while it is used: what it
// says counts from then on, and a file that cannot be read changes nothing.
func TestKeysFollowTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allowed_signers")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := signed.OpenKeys(path, nil); err == nil {
		t.Error("a file that is missing was read")
	}
	write(known(t).String())
	keys, err := signed.OpenKeys(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func() string {
		if _, err := keys.Check(approval(), []string{signedBy(t, "ada", approval())}, made, ada); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := check(); got != "" {
		t.Error(got)
	}
	write(known(t)[:3].String())
	wait.Until(t, "ada is removed", func() bool { return strings.Contains(check(), "not among the trusted keys") })
	write("garbage")
	wait.Until(t, "the former keys stay", func() bool { return strings.Contains(check(), "not among the trusted keys") })
	write(known(t).String())
	wait.Until(t, "ada is there again", func() bool { return check() == "" })
}

// TestConfirm reads proofs as a journal keeps them, without the messages.
func TestConfirm(t *testing.T) {
	keys := signed.NewKeys(known(t))
	p, err := signed.Parse(signedBy(t, "ada", approval()))
	if err != nil {
		t.Fatal(err)
	}
	if account, err := keys.Confirm(&p); account != "ada" || err != nil {
		t.Errorf("got %q, %v", account, err)
	}
	if !p.Of(approval().Payload) || p.Of([]byte("x")) {
		t.Error("it is of another content")
	}
	altered := p
	altered.Subject = "forge.intent.shop.by.ada.reject"
	if _, err := keys.Confirm(&altered); err == nil || !strings.Contains(err.Error(), "does not hold") {
		t.Errorf("another subject: %v", err)
	}
	relayed, err := signed.Parse(signedBy(t, "runner", approval()))
	if err != nil {
		t.Fatal(err)
	}
	if account, err := keys.Confirm(&relayed); err == nil {
		t.Errorf("a runner's is taken for that of %s", account)
	}
	if _, err := signed.NewKeys(known(t)[:2]).Confirm(&p); err == nil {
		t.Error("an unknown key is confirmed")
	}
}

// TestTooLong: what has no room in the headers of a message is not signed.
func TestTooLong(t *testing.T) {
	if p, err := signed.Sign(key(t, "ada"), &signed.Message{ID: strings.Repeat("/", 2000)}, made); err == nil {
		t.Errorf("got %d bytes", len(p.String()))
	}
}

// FuzzProof: what is read has one text, and no message but the one that was signed is believed.
func FuzzProof(f *testing.F) {
	m := approval()
	p, err := signed.Sign(key(f, "ada"), m, made)
	if err != nil {
		f.Fatal(err)
	}
	keys := signed.NewKeys(known(f))
	f.Add(p.String(), m.Subject, m.ID, m.ContentType, m.Payload)
	f.Add(strings.Replace(p.String(), "v1 ", "v1  ", 1), m.Subject, m.ID, m.ContentType, m.Payload)
	f.Add(p.String(), m.Subject, m.ID+"\n", m.ContentType, m.Payload)
	f.Fuzz(func(t *testing.T, text, subject, id, kind string, payload []byte) {
		got, err := signed.Parse(text)
		if err == nil && got.String() != text {
			t.Errorf("%q is read as %q", text, got.String())
		}
		came := &signed.Message{Subject: subject, ID: id, ContentType: kind, Payload: payload}
		same := subject == m.Subject && id == m.ID && kind == m.ContentType && bytes.Equal(payload, m.Payload)
		if _, err := keys.Check(came, []string{text}, made, ada); (err == nil) != (same && text == p.String()) {
			t.Errorf("%q for %+v: %v", text, came, err)
		}
	})
}

// BenchmarkSign signs a result of 4 KiB.
func BenchmarkSign(b *testing.B) {
	k, m := key(b, "reviewer"), &signed.Message{Subject: "forge.result.review.shop.fix-login", Payload: make([]byte, 4<<10)}
	for b.Loop() {
		if _, err := signed.Sign(k, m, made); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck checks one.
func BenchmarkCheck(b *testing.B) {
	m := &signed.Message{Subject: "forge.result.review.shop.fix-login", Payload: make([]byte, 4<<10)}
	path := filepath.Join(b.TempDir(), "allowed_signers")
	if err := os.WriteFile(path, []byte(known(b).String()), 0o600); err != nil {
		b.Fatal(err)
	}
	keys, err := signed.OpenKeys(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	texts := []string{signedBy(b, "reviewer", m)}
	for b.Loop() {
		if _, err := keys.Check(m, texts, made, signed.WorkerOf(forge.StepReview)); err != nil {
			b.Fatal(err)
		}
	}
}

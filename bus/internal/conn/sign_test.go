package conn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// account signs messages as an account does, and notes when each was signed.
type account struct {
	t *testing.T
	s *conn.Signer
	// running are the calls of send.
	running sync.WaitGroup

	mu sync.Mutex
	// answered are the functions to call for messages that are signed, by their numbers.
	answered map[int]func()
	sent     []*nats.Msg
}

// newAccount returns an account whose key is asked for by source.
func newAccount(t *testing.T, source proof.Source) *account {
	t.Helper()
	s := &conn.Signer{Key: source}
	s.Answered(nats.Header{"Forge-Signed-Together": {"true"}})
	return &account{t: t, s: s, answered: map[int]func(){}}
}

// ownKey returns the key of the account.
func ownKey(t *testing.T) proof.Source {
	t.Helper()
	k, err := proof.Derive([]byte(strings.Repeat("a", 32)), "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	return func() (*proof.Key, error) { return k, nil }
}

// send has message i signed, and returns when all that can happen before time goes on has.
func (a *account) send(i int, urgent bool) {
	a.t.Helper()
	m := nats.NewMsg(fmt.Sprint("forge.result.review.shop.", i))
	m.Data = []byte(m.Subject)
	a.running.Go(func() {
		answered, err := a.s.Sign(m, urgent)
		if err != nil {
			a.t.Error(err)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answered[i] = answered
		a.sent = append(a.sent, m)
	})
	synctest.Wait()
}

// answer says that message i is answered.
func (a *account) answer(i int) {
	a.t.Helper()
	a.mu.Lock()
	answered := a.answered[i]
	a.mu.Unlock()
	if answered == nil {
		a.t.Fatalf("message %d is not signed", i)
	}
	answered()
	synctest.Wait()
}

// pass lets time go by.
func (a *account) pass(d time.Duration) {
	a.t.Helper()
	<-wait.Briefly(a.t, d).Done()
	synctest.Wait()
}

// signatures returns how many messages each signature until now is over, in
// order. Each message has a proof that holds.
func (a *account) signatures() (list []int) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, m := range a.sent {
		p, err := signed.Parse(m.Header.Get(signed.Header))
		if err != nil || !p.Holds() || p.Subject != m.Subject || !p.Of(m.Data) || (p.Place == nil) != strings.HasPrefix(p.String(), "v1") {
			a.t.Errorf("%s has the proof %q, %v", m.Subject, p.String(), err)
		}
		by := string(p.Signature)
		i := slices.Index(all, by)
		if i < 0 {
			all, list, i = append(all, by), append(list, 0), len(list)
		}
		list[i]++
	}
	return list
}

// expect compares the signatures until now.
func (a *account) expect(what string, want ...int) {
	a.t.Helper()
	if got := a.signatures(); !slices.Equal(got, want) {
		a.t.Errorf("%s: signatures are over %v messages, want %v", what, got, want)
	}
}

// TestMessagesAreGathered sends messages while others are not answered. Those that come alone
// are signed at once, the others together: when all before are answered, a hundredth of a
// second later, with one that is urgent, or when there are as many as a signature may be over.
func TestMessagesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, ownKey(t))
		a.send(1, false)
		a.expect("alone", 1)
		a.answer(1)
		a.send(2, false)
		a.expect("alone again", 1, 1)
		a.send(3, false)
		a.send(4, false)
		a.expect("while one is not answered", 1, 1)
		a.answer(2)
		a.expect("when it is", 1, 1, 2)
		a.send(5, false)
		a.answer(3)
		a.expect("while one of two is not answered", 1, 1, 2)
		a.pass(9 * time.Millisecond)
		a.expect("a moment later", 1, 1, 2)
		a.send(6, false)
		a.pass(time.Millisecond)
		a.expect("a hundredth of a second after the first", 1, 1, 2, 2)
		a.send(7, false)
		a.send(8, true)
		a.expect("with an urgent one", 1, 1, 2, 2, 2)
		for i := range signed.MaxTogether {
			a.send(9+i, false)
		}
		a.expect("as many as fit", 1, 1, 2, 2, 2, signed.MaxTogether)
		for _, i := range slices.Concat([]int{4, 5, 6, 7, 8}, []int{9, 10}) {
			a.answer(i)
		}
		a.send(100, false)
		for i := 2; i < signed.MaxTogether; i++ {
			a.answer(9 + i)
		}
		a.expect("when all are answered", 1, 1, 2, 2, 2, signed.MaxTogether, 1)
		a.running.Wait()
	})
}

// TestSignedAloneUntilAllCanRead: until a runner has said that all runners read
// a signature over several messages, and again when one says nothing of it,
// each message is signed by itself, at once.
func TestSignedAloneUntilAllCanRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, ownKey(t))
		a.s.Answered(nil)
		for i := range 3 {
			a.send(i, i == 2)
		}
		a.expect("not told", 1, 1, 1)
		a.s.Answered(nats.Header{"Forge-Signed-Together": {"true"}})
		a.send(3, false)
		a.send(4, false)
		a.pass(10 * time.Millisecond)
		a.expect("told", 1, 1, 1, 2)
		a.s.Answered(nats.Header{"Forge-Decided": {"true"}})
		a.send(5, false)
		a.expect("by a runner that says nothing of it", 1, 1, 1, 2, 1)
		a.s.Answered(nats.Header{"Forge-Signed-Together": {"true"}})
		a.send(6, false)
		a.send(7, false)
		a.s.Answered(nil)
		a.send(8, false)
		a.expect("while some wait to be signed together", 1, 1, 1, 2, 1, 1, 1, 1)
		a.s.Answered(nats.Header{"Forge-Signed-Together": {"true"}})
		a.pass(30 * time.Second)
		a.send(9, false)
		a.send(10, false)
		a.expect("of whom nothing was heard for long", 1, 1, 1, 2, 1, 1, 1, 1, 1, 1)
		a.running.Wait()
	})
}

// TestOneGatheredMessageFails has one message that is too long to be signed: the others are.
func TestOneGatheredMessageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, ownKey(t))
		a.send(1, false)
		long := nats.NewMsg("x")
		long.Header.Set(jetstream.MsgIDHeader, strings.Repeat("/", 2000))
		a.running.Go(func() {
			if answered, err := a.s.Sign(long, false); err == nil || answered != nil || len(long.Header) != 1 {
				t.Errorf("signed: %v", err)
			}
		})
		synctest.Wait()
		a.send(2, false)
		a.answer(1)
		a.expect("the others", 1, 1)
		a.answer(2)
		a.send(3, false)
		a.expect("the one that failed is not waited for", 1, 1, 1)
		a.running.Wait()
	})
}

// TestNoKeyForAGroup: a key that is missing fails each message that waits for
// it, and none after it is there.
func TestNoKeyForAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, missing := ownKey(t), false
		a := newAccount(t, func() (*proof.Key, error) {
			if missing {
				return nil, errors.New("no such file")
			}
			return source()
		})
		a.send(1, false)
		missing = true
		for range 2 {
			a.running.Go(func() {
				if _, err := a.s.Sign(nats.NewMsg("x"), false); err == nil || !strings.Contains(err.Error(), "sign a message for x: no such file") {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		a.answer(1)
		a.running.Wait()
		missing = false
		a.send(2, false)
		a.expect("mended", 1, 1)
		a.running.Wait()
	})
}

// TestNoKey: without a source, and where it has no key, messages are sent as they are.
func TestNoKey(t *testing.T) {
	for _, source := range []proof.Source{nil, func() (*proof.Key, error) { return nil, nil }} { //nolint:nilnil // no key
		m := nats.NewMsg("x")
		answered, err := (&conn.Signer{Key: source}).Sign(m, false)
		if err != nil || len(m.Header) != 0 {
			t.Errorf("got %v, %v", m.Header, err)
		}
		answered()
	}
}

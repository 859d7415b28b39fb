package bus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestForgedMessages alters what ada and the reviewer have signed, as whoever
// can read and publish could.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	st := newStrict(t)
	approve := func(intent forge.IntentID, plan string) []byte {
		data, err := wire.Events.Marshal(&forge.Event{
			ID: "approve-1", To: forge.Key{Project: "shop", Intent: intent}, Actor: "ada", Message: &forge.Approve{Plan: plan},
		})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	reviewed := func(intent forge.IntentID, number int, verdict forge.Verdict) []byte {
		data, err := work.MarshalResult(forge.Result{
			To: forge.Key{Project: "shop", Intent: intent}, Replica: "reviewer-0",
			Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: number, Claim: 1},
			Output:  &forge.Review{TaskID: "fix-login-001", Attempt: number, Verdict: verdict},
		})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const asks, reports = "forge.intent.shop.by.ada.approve", "forge.result.review.shop.fix-login"
	now := time.Now()
	sign := func(account, subject, id string, data []byte, at time.Time) string {
		p, err := signed.Sign(keyOf(t, account), &signed.Message{Subject: subject, ID: id, Payload: data}, at)
		if err != nil {
			t.Fatal(err)
		}
		return p.String()
	}
	ours := sign("ada", asks, "1", approve("fix-login", "d6b94d4dcc51"), now)
	theirs := sign("reviewer", reports, "", reviewed("fix-login", 1, forge.VerdictApproved), now)
	for i, attack := range []struct {
		name, subject, id string
		data              []byte
		texts             []string
		want              string
	}{
		{"an approval of another intent", asks, "1", approve("other", "d6b94d4dcc51"), []string{ours}, "content is not the one that was signed"},
		{"an approval of another plan", asks, "1", approve("fix-login", "000000000000"), []string{ours}, "content is not the one that was signed"},
		{"an approval under another id", asks, "2", approve("fix-login", "d6b94d4dcc51"), []string{ours}, `signed as message "1"`},
		{"an approval in another's name", "forge.intent.shop.by.bob.approve", "1", approve("fix-login", "d6b94d4dcc51"), []string{ours}, "is from"},
		{"an approval in another project", "forge.intent.bank.by.ada.approve", "1", approve("fix-login", "d6b94d4dcc51"), []string{ours}, "for"},
		{"without its signature", asks, "1", approve("fix-login", "d6b94d4dcc51"), nil, "nothing proves that it is from ada"},
		{"with two", asks, "1", approve("fix-login", "d6b94d4dcc51"), []string{ours, ours}, "it has 2 signatures"},
		{"with garbage", asks, "1", approve("fix-login", "d6b94d4dcc51"), []string{"v1 x"}, "cannot be read"},
		{"with much garbage", asks, "1", approve("fix-login", "d6b94d4dcc51"), []string{strings.Repeat("A", 60_000)}, "cannot be read"},
		{
			"kept for an hour", asks, "1", approve("fix-login", "d6b94d4dcc51"),
			[]string{sign("ada", asks, "1", approve("fix-login", "d6b94d4dcc51"), now.Add(-time.Hour))},
			"it was sent again by another, or a clock is wrong",
		},
		{
			"by a clock that is ahead", asks, "1", approve("fix-login", "d6b94d4dcc51"),
			[]string{sign("ada", asks, "1", approve("fix-login", "d6b94d4dcc51"), now.Add(time.Hour))},
			"a clock is wrong",
		},
		{"a result as another attempt's", reports, "", reviewed("fix-login", 2, forge.VerdictApproved), []string{theirs}, "content is not the one"},
		{"another verdict", reports, "", reviewed("fix-login", 1, forge.VerdictRejected), []string{theirs}, "content is not the one"},
		{
			"a result as another intent's", "forge.result.review.shop.other", "", reviewed("other", 1, forge.VerdictApproved),
			[]string{theirs},
			`was signed for "forge.result.review.shop.fix-login"`,
		},
		{
			"a review by the implementer", reports, "", reviewed("fix-login", 3, forge.VerdictApproved),
			[]string{sign("implementer", reports, "", reviewed("fix-login", 3, forge.VerdictApproved), now)},
			"it was signed by implementer and came as from reviewer",
		},
		{"a result without its signature", reports, "", reviewed("fix-login", 4, forge.VerdictApproved), nil, "nothing proves that it is from reviewer"},
	} {
		m := nats.NewMsg(attack.subject)
		m.Data = attack.data
		if attack.id != "" {
			m.Header.Set(jetstream.MsgIDHeader, attack.id)
		}
		for _, text := range attack.texts {
			m.Header.Add(signed.Header, text)
		}
		before := deadOn(t, st, attack.subject)
		if strings.HasPrefix(attack.subject, "forge.result.") {
			if err := st.admin.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		} else {
			wait.Until(t, attack.name+" is stored", func() bool { // the stream remembers an id for a moment
				answer, err := st.admin.RequestMsg(m, time.Second)
				return err == nil && !strings.Contains(string(answer.Data), `"duplicate"`)
			})
		}
		var reason string
		wait.Until(t, attack.name+" is among the dead letters", func() bool {
			now := deadOn(t, st, attack.subject)
			if len(now) > len(before) {
				reason = now[len(now)-1]
			}
			return reason != ""
		})
		if !strings.Contains(reason, attack.want) {
			t.Errorf("%d, %s: %s", i, attack.name, reason)
		}
	}
	if len(st.seen) > 0 {
		t.Errorf("a runner was given %+v", <-st.seen)
	}
}

// deadOn returns the reasons of the dead letters of a subject.
func deadOn(t *testing.T, st *strict, subject string) (reasons []string) {
	t.Helper()
	list, err := st.dead.Dead(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.Subject == subject {
			reasons = append(reasons, d.Reason)
		}
	}
	return reasons
}

// TestForgedResultsAreFinal: the sender of a result that never becomes a good
// one is told so, and does not send it again.
func TestForgedResultsAreFinal(t *testing.T) {
	t.Parallel()
	st := newStrict(t)
	forger := st.connect("reviewer", "implementer")
	done := publish(wait.Context(t), forger, forge.Result{
		To: key, Attempt: forge.Attempt{Step: forge.StepJudge, Number: 1, Claim: 1}, Replica: "reviewer-0", Output: &forge.Failure{Reason: forge.FailCrashed},
	})
	err := wait.For(t, done)
	if refused, ok := errors.AsType[*work.RefusedError](err); !ok || !strings.Contains(refused.Reason, "it was signed by implementer") {
		t.Errorf("got %v", err)
	}
}

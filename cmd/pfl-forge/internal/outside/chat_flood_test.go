package outside

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack/slacktest"
)

// TestChatFlood: however many strangers press before a person does, that person's press
// is decided before any of them is answered, and those that are too many are dropped.
func TestChatFlood(t *testing.T) {
	t.Parallel()
	w := decided(t)
	stop := w.watch(w.config(w.client()))
	path, _ := w.proposed("flood")
	m := w.message("waits for approval")
	b, _ := m.Button("Approve")
	stop()
	stranger := func(n int) string { return fmt.Sprintf("U0EVE%04d", n) }
	const strangers = 30
	for n := range strangers {
		if got := w.deliver(slacktest.Form(w.slack.Press(stranger(n), slacktest.Team, &m, b))); got != http.StatusOK {
			t.Fatalf("a stranger is answered with %d", got)
		}
	}
	w.press("bob", &m, "Approve")
	told := func() (n int) {
		for i := range strangers {
			n += len(w.slack.Told(stranger(i)))
		}
		return n
	}
	// The first stranger's answer takes a while. Bob's press is decided by
	// then, although it was the last to come.
	w.watch(w.config(w.client()))
	wait.Until(t, "a stranger is told", func() bool { return told() > 0 })
	if n := len(events[*forge.Approve](w, path)); n != 1 {
		t.Errorf("bob's press was decided %d times when the first stranger was answered", n)
	}
	wait.Until(t, "as many strangers are told as wait at once", func() bool { return told() == 20 })
	if n := strings.Count(w.log.String(), "an act in a chat is dropped"); n != strangers-20 {
		t.Errorf("%d were dropped: %s", n, w.log.String())
	}
}

// TestChatOfAnUnsaidWorkspace: where Slack does not say of which workspace a person is, and several
// are configured, nothing is decided and the person is told; with one alone it can be no other.
func TestChatOfAnUnsaidWorkspace(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint("alone ", alone), func(t *testing.T) {
			w := decided(t)
			w.alone = alone
			w.watch(w.config(w.client()))
			path, _ := w.proposed("unsaid")
			m := w.message("waits for approval")
			b, _ := m.Button("Approve")
			payload := strings.Replace(string(w.slack.Press(accounts["bob"], slacktest.Team, &m, b)), `"team_id":"`+slacktest.Team+`"`, `"team_id":""`, 1)
			if got := w.deliver(slacktest.Form([]byte(payload))); got != http.StatusOK {
				t.Fatalf("Slack is answered with %d", got)
			}
			if alone {
				w.message("is executing")
				return
			}
			w.told("bob", "did not say which workspace")
			if len(events[*forge.Approve](w, path)) != 0 {
				t.Error("it was approved")
			}
		})
	}
}

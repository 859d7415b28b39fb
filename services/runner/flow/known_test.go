package flow_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// Every message reaches a rule of the machine that messages.All names as its receiver.
// The switches of an intent have defaults, so the linter does not see that.
func TestEveryMessageIsKnown(t *testing.T) {
	const unknown = "has no message that"
	at := time.Unix(1, 0).UTC()
	for _, m := range messages.All() {
		key := forge.Key{Project: "p", Intent: "a"}
		intent, project := flow.NewIntent(key), projects.New(key.ProjectKey())
		submit := &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "t", Body: "b"}, Source: forge.SourceHuman}}
		intent.Step(rules.Newest, forge.Event{ID: "1", To: key, At: at, Actor: "me", Message: submit})
		step := intent.Step
		if m.To == messages.PartyProject {
			key, step = key.ProjectKey(), project.Step
		}
		_, r := step(rules.Newest, forge.Event{ID: "2", To: key, At: at, Actor: "a", Message: m.Message})
		if strings.Contains(r.Reason, unknown) {
			t.Errorf("the %s knows no %s: %s", m.To, reflect.TypeOf(m.Message).Elem().Name(), r.Reason)
		}
	}
	_, r := projects.New(forge.Key{Project: "p"}).Step(rules.Newest, forge.Event{ID: "1", At: at, Message: &forge.Submit{}})
	if !strings.Contains(r.Reason, unknown) {
		t.Errorf("a project says of a message to intents: %q", r.Reason)
	}
}

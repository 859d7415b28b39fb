package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// guide returns the page for other systems.
func guide(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide-systems.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// block is a part of the page that is between fences.
type block struct{ language, text string }

func blocks(t *testing.T) (list []block) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(guide(t), -1) {
		list = append(list, block{m[1], m[2]})
	}
	return list
}

var natsRequest = regexp.MustCompile(`(?s)nats --inbox-prefix (\S+) req (\S+)(?: -H (\S+?):(\S+))?\s+(?:\\\n\s*)?'(.*?)'\n`)

// The examples of the page work as it says, in its order.
func TestGuide(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	serving(t, b)
	nc := client(t, s)
	list := blocks(t)
	requests := 0
	for i, one := range list {
		switch one.language {
		case "sh":
			for _, m := range natsRequest.FindAllStringSubmatch(one.text, -1) {
				requests++
				answer := guideRequest(t, nc, m[2], m[3], m[4], m[5])
				if i+1 < len(list) && list[i+1].language == "json" && strings.HasSuffix(m[2], ".submit") {
					var want map[string]any
					if err := json.Unmarshal([]byte(list[i+1].text), &want); err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(answer, want) {
						t.Errorf("%s answers %v, want %v", m[0], answer, want)
					}
				}
			}
		case "python":
			m := regexp.MustCompile(`(?s)^event = (\{.*?^\}|\{.*?\n\})`).FindStringSubmatch(one.text)
			to := regexp.MustCompile(`publish\("(\S+)"`).FindStringSubmatch(one.text)
			if m == nil || to == nil {
				t.Fatalf("no event in %s", one.text)
			}
			guideRequest(t, nc, to[1], "Content-Type", "application/cloudevents+json", m[1])
		}
	}
	if requests != 10 {
		t.Errorf("%d requests are in the page", requests)
	}
	if err := askForChange(t.Context(), nc, "finding-4713"); err != nil {
		t.Error(err)
	}
	want := map[string]bool{"finding-4711": true, "finding-4712": true, "finding-4713": true, "finding-4714": true}
	wait.Until(t, "all findings are intents", func() bool {
		all, err := b.Journal.Summaries(t.Context(), "shop")
		if err != nil {
			t.Fatal(want, err)
		}
		for _, one := range all {
			delete(want, string(one.Key.Intent)[:len("finding-4711")])
		}
		return len(want) == 0
	})
	if dead, err := b.Dead(t.Context()); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// guideRequest sends what the page says, and returns the answer.
func guideRequest(t *testing.T, nc *nats.Conn, subject, header, value, data string) (answer map[string]any) {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(data)
	if header != "" {
		m.Header.Set(header, value)
	}
	reply, err := nc.RequestMsg(m, 10*time.Second)
	if err != nil {
		t.Fatal(subject, err)
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		t.Fatalf("%s: %q", subject, reply.Data)
	}
	if code := reply.Header.Get("Nats-Service-Error-Code"); code != "" && answer["errors"] == nil || answer["error"] != nil {
		t.Errorf("%s %s: %s %v", subject, data, code, answer)
	}
	return answer
}

// The page's functions are those that are tested, and following works.
func TestGuideFollows(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("guide_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range blocks(t) {
		if one.language == "go" && !strings.Contains(string(code), one.text) {
			t.Errorf("this is not in guide_example_test.go:\n%s", one.text)
		}
	}
	s := bustest.StartServer(t)
	b := s.Connect(t)
	start(t, b, 1)
	nc := client(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateConsumer(t.Context(), "FORGE_EVENTS", jetstream.ConsumerConfig{
		Durable: "tracker", FilterSubject: "forge.event.shop.>", AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := askForChange(t.Context(), nc, "finding-1"); err != nil {
		t.Fatal(err)
	}
	ctx := wait.Context(t)
	var got []string
	errEnough := errors.New("enough")
	err = followChanges(ctx, nc, func(what string, event []byte) error {
		var ev struct{ Data document.Change }
		if err := json.Unmarshal(event, &ev); err != nil {
			return err
		}
		got = append(got, fmt.Sprint(what, " ", ev.Data.Origin.EventID))
		if what == "waiting" {
			return errEnough
		}
		return nil
	})
	if want := []string{"submitted finding-1", "waiting finding-1"}; !errors.Is(err, errEnough) || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// The page lists every change, with the same words as the code.
func TestGuideIsComplete(t *testing.T) {
	t.Parallel()
	page := guide(t)
	for _, what := range changes.Kinds() {
		if !strings.Contains(page, "\n| `"+string(what)+"` | ") {
			t.Errorf("the page does not have %s", what)
		}
	}
	_, table, _ := strings.Cut(page, "| what | when |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ").FindAllStringSubmatch(table, -1) {
		found := false
		for _, what := range changes.Kinds() {
			found = found || string(what) == m[1]
		}
		if !found {
			t.Errorf("%s is no change", m[1])
		}
	}
}

package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// serving runs a runner that answers requests, until what it returns is called.
func serving(t testing.TB, b *bus.Bus) (stop func()) {
	t.Helper()
	return servingBy(t, b, runner.RulesConfig{})
}

// servingBy is serving, with a choice of the rules.
func servingBy(t testing.TB, b *bus.Bus, by runner.RulesConfig) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Serve: true, Rules: by, Ready: func() { close(ready) }})
	})
	<-ready
	stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// client is a connection of another system.
func client(t testing.TB, s *bustest.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// request asks an endpoint until it is there, and returns its answer and error code.
func request(t testing.TB, nc *nats.Conn, subject, data string) (answer map[string]any, code string) {
	t.Helper()
	var reply *nats.Msg
	var err error
	wait.Until(t, subject+" is answered", func() bool {
		reply, err = nc.Request(subject, []byte(data), 8*time.Second)
		return err == nil
	})
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		t.Fatalf("%s: %q: %v", subject, reply.Data, err)
	}
	return answer, reply.Header.Get("Nats-Service-Error-Code")
}

const scan = `{"title": "Update the parser", "body": "It has a hole.", "labels": ["security"], "origin": {"system": "scanner", "event_id": "%d"}}`

// A system submits, is told at once, lists and shows.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	for range 2 { // they share the requests
		serving(t, s.Connect(t))
	}
	nc := client(t, s)
	first, code := request(t, nc, "forge.api.web.submit", fmt.Sprintf(scan, 1))
	id, _ := first["intent"].(string)
	if code != "" || first["result"] != "new" || first["project"] != "web" || !strings.HasPrefix(id, "1-") {
		t.Fatal(first, code)
	}
	for _, again := range []struct{ subject, data string }{
		{"forge.api.web.submit", fmt.Sprintf(scan, 1)},
		{"forge.api.web.from.scanner.submit", `{"title": "x", "body": "y", "origin": {"event_id": "1"}}`},
		{"forge.api.web.submit", `{"specversion": "1.0", "type": "io.pfl-forge.intent.submit.v1", "source": "scanner", "id": "1",
			"data": {"title": "x", "body": "y"}}`},
	} {
		got, code := request(t, nc, again.subject, again.data)
		if code != "" || got["result"] != "known" || got["intent"] != id {
			t.Errorf("%s: %v %s", again.data, got, code)
		}
	}
	named, code := request(t, nc, "forge.api.web.submit", `{"id": "my-own", "title": "x", "body": "y", "origin": {"system": "scanner"}}`)
	if code != "" || named["result"] != "new" || named["intent"] != "my-own" {
		t.Error(named, code)
	}
	for _, refused := range []struct{ subject, data, code, want string }{
		{"forge.api.web.submit", `{"id": "my-own", "title": "x", "body": "y", "origin": {"system": "other"}}`, "409", "map[field:id reason:is taken"},
		{"forge.api.web.submit", `{"titel": "x", "priority": "a"}`, "400", "map[field:priority reason:is not a whole number] map[field:titel reason:is not known"},
		{"forge.api.web.submit", `{"title": "x", "body": "y", "source": "human", "origin": {"system": "a"}}`, "400", `map[field:source reason:is "human"`},
		{"forge.api.web.submit", "\xff", "400", "is neither a JSON object nor a protobuf Event"},
		{"forge.api.web.submit", "", "400", "is empty; it is to be the intent"},
		{"forge.api.web.by.ada.list", `{"status": ["bogus", "done"]}`, "400", `map[field:status reason:is "bogus"; it can be proposed, approved,`},
		{"forge.api.web.by.ada.list", `{"waiting": ["tea"]}`, "400", `map[field:waiting reason:is "tea"; it can be approval, clarification,`},
		{"forge.api.web.by.ada.list", `{"since": "yesterday"}`, "400", "map[field:since reason:is not a time such as"},
		{"forge.api.WEB.submit", "{}", "400", "only a-z"},
		{"forge.api.web.from.other.submit", fmt.Sprintf(scan, 2), "400", "may speak for"},
		{"forge.api.web.by.ada.show", `{"intent": "nobody"}`, "404", `there is no intent "nobody"`},
		{"forge.api.web.by.ada.show", `{"intent": "A*"}`, "400", "only a-z"},
		{"forge.api.web.by.ada.show", `[]`, "400", "is not a JSON object"},
		{"forge.api.web.by.ada.list", `{"limit": 0, "sort": "id"}`, "400", "map[field:sort reason:is not known"},
	} {
		got, code := request(t, nc, refused.subject, refused.data)
		if code != refused.code || !strings.Contains(fmt.Sprint(got["errors"]), refused.want) {
			t.Errorf("%s %s: %v %s, want %s %s", refused.subject, refused.data, got, code, refused.code, refused.want)
		}
	}
	shown, code := request(t, nc, "forge.api.web.by.ada.show", `{"intent": "`+id+`"}`)
	if code != "" || shown["title"] != "Update the parser" || shown["body"] != "It has a hole." || shown["source"] != "system" ||
		fmt.Sprint(shown["origin"]) != "map[event_id:1 system:scanner]" || fmt.Sprint(shown["labels"]) != "[security]" {
		t.Error(shown, code)
	}
	page, _ := request(t, nc, "forge.api.web.by.ada.list", `{"limit": 1}`)
	if list := page["intents"].([]any); len(list) != 1 || page["next"] != id {
		t.Error(page)
	}
	rest, _ := request(t, nc, "forge.api.web.by.ada.list", `{"after": "`+id+`", "status": ["proposed"]}`)
	if list := rest["intents"].([]any); len(list) != 1 || list[0].(map[string]any)["intent"] != "my-own" || rest["next"] != nil {
		t.Error(rest)
	}
	for _, narrow := range []string{
		`{"labels": ["security"]}`, `{"requester": "scanner", "labels": ["security"], "since": "2026-01-01T00:00:00Z"}`,
	} {
		found, code := request(t, nc, "forge.api.web.by.ada.list", narrow)
		if list, _ := found["intents"].([]any); code != "" || len(list) != 1 || list[0].(map[string]any)["intent"] != id {
			t.Errorf("%s: %v %s", narrow, found, code)
		}
	}
	if none, _ := request(t, nc, "forge.api.other.by.ada.list", ""); len(none["intents"].([]any)) != 0 {
		t.Error(none)
	}
}

// A system is told what was refused, also when it only stored its submission.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	serving(t, s.Connect(t))
	nc := client(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct{ subject, data string }{
		{"forge.intent.web.submit", `{"titel": "x", "origin": {"system": "scanner", "event_id": "1"}}`},
		{"forge.intent.web.from.ci.submit", `{"specversion": "1.0", "type": "io.pfl-forge.intent.submit.v1", "source": "ci", "id": "2", "data": {"title": "t"}}`},
		{"forge.intent.web.from.ci.submit", "\xff"},
		{"forge.intent.web.submit", `{"id": "taken", "title": "t", "body": "b", "origin": {"system": "one"}}`},
		{"forge.intent.web.submit", `{"id": "taken", "title": "t", "body": "b", "origin": {"system": "other/2"}}`},
		{"forge.intent.web.submit", "\xff"},
	} {
		if _, err := js.Publish(t.Context(), m.subject, []byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	cons, err := js.OrderedConsumer(t.Context(), "FORGE_REFUSALS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"web.scanner web scanner/1 [{titel is not known":               true,
		"web.ci web ci/2 [{body is empty}]":                            true,
		"web.ci web ci/ [{ is neither a JSON object":                   true,
		"web.other=2f2 web other/2/taken [{id is taken by another int": true,
		"web.- web / [{ is neither a JSON object":                      true,
	}
	for n := len(want); n > 0; n-- {
		m, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err, want)
		}
		var ev struct {
			Type string
			Data requests.Refusal
		}
		if err := json.Unmarshal(m.Data(), &ev); err != nil || ev.Type != "io.pfl-forge.submission.refused.v1" {
			t.Fatal(err, string(m.Data()))
		}
		got := fmt.Sprintf("%s %s %s/%s %v", strings.TrimPrefix(m.Subject(), "forge.refusal."), ev.Data.Project,
			ev.Data.Origin.System, ev.Data.Origin.EventID, ev.Data.Errors)
		found := ""
		for w := range want {
			if strings.HasPrefix(got, w) {
				found = w
			}
		}
		if found == "" {
			t.Errorf("told %q", got)
		}
		delete(want, found)
	}
}

// What an intent goes through is told to everybody, from its submission to its end.
func TestLifeIsTold(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	start(t, b, 1)
	js, err := jetstream.New(client(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "forge.intent.web.submit", fmt.Appendf(nil, scan, 1)); err != nil {
		t.Fatal(err)
	}
	if ruling, err := b.Submissions.Ask(t.Context(), submission("one")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusDone, "one")
	want := map[string]string{
		"one": "submitted planned executing task-done done",
	}
	got := map[string]string{}
	cons, err := js.OrderedConsumer(t.Context(), "FORGE_EVENTS", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"forge.event.web.>"}})
	if err != nil {
		t.Fatal(err)
	}
	for strings.Count(got["one"], " ") < 4 || !strings.Contains(fmt.Sprint(got), "waiting") {
		m, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err, got)
		}
		parts := strings.Split(m.Subject(), ".")
		if got[parts[3]] == "" {
			got[parts[3]] = parts[4]
		} else {
			got[parts[3]] += " " + parts[4]
		}
	}
	for id := range got {
		if strings.HasPrefix(id, "1-") {
			want[id] = "submitted waiting" // a system that nobody trusts: a person lets it be analyzed
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A system that sends an event again with another text is told that the intent
// is known, and everybody who looks at it that its text was edited: what is
// worked on stays. Another system, or a person, says nothing of the kind.
func TestLaterTextIsTold(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	servingBy(t, s.Connect(t), runner.RulesConfig{Alone: true}) // by the newest rules, at once
	nc := client(t, s)
	submit := func(subject, data, want string) (id string) {
		got, code := request(t, nc, subject, data)
		if code+fmt.Sprint(got["result"]) != want {
			t.Errorf("%s: %v %s, want %s", data, got, code, want)
		}
		id, _ = got["intent"].(string)
		return id
	}
	const first = `{"title": "Update the parser", "body": "It has a hole.", "origin": {"event_id": "1"}}`
	id := submit("forge.api.web.from.scanner.submit", first, "new")
	show := func() (title, later, reason string) {
		shown, _ := request(t, nc, "forge.api.web.by.ada.show", `{"intent": "`+id+`"}`)
		text, _ := shown["text"].(map[string]any)
		title, _ = shown["title"].(string)
		later, _ = text["later"].(string)
		reason, _ = shown["reason"].(string)
		return title, later, reason
	}
	submit("forge.api.web.from.scanner.submit", first, "known")
	submit("forge.api.web.from.other.submit", `{"id": "`+id+`", "title": "x", "body": "y"}`, "409<nil>")
	if title, later, reason := show(); title != "Update the parser" || later != "" || strings.Contains(reason, "edited") {
		t.Errorf("%s is told as %q: %s", title, later, reason)
	}
	for range 2 {
		submit("forge.api.web.from.scanner.submit", `{"title": "x", "body": "y", "origin": {"event_id": "1"}}`, "known")
	}
	other := messages.HashText("x", "y")[:12]
	if title, later, reason := show(); title != "Update the parser" || later != other || !strings.Contains(reason, "edited at scanner") {
		t.Errorf("%s is told as %q: %s", title, later, reason)
	}
	submit("forge.api.web.from.scanner.submit", first, "known")
	if _, later, reason := show(); later != "" || strings.Contains(reason, "edited") {
		t.Errorf("what was taken back is told as %q: %s", later, reason)
	}
	shown, _ := request(t, nc, "forge.api.web.by.ada.show", `{"intent": "`+id+`"}`)
	var acts []string
	for _, d := range shown["decisions"].([]any) {
		acts = append(acts, d.(map[string]any)["what"].(string))
	}
	if got := strings.Join(acts, " "); got != "submit edit_at_origin edit_at_origin" {
		t.Errorf("decided was %s", got)
	}
}

// A system tells of comments on an intent that is there, each once, and nothing else comes
// of it; what it says of the intent beside them, or of one that nobody knows, is refused.
func TestCommentsAreTold(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	servingBy(t, b, runner.RulesConfig{Alone: true}) // by the newest rules from the first decision on
	nc := client(t, s)
	const about = `"origin": {"event_id": "1"}`
	const comments = `"comments": {"count": 2, "account": "eve", "ref": "findings/1 comment 7", "at": "2026-11-20T11:00:00Z"}`
	submit := func(subject, data, want string) (id string) {
		got, code := request(t, nc, subject, "{"+data+"}")
		if said := fmt.Sprint(code, got["result"], got["errors"]); !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %s", data, said, want)
		}
		id, _ = got["intent"].(string)
		return id
	}
	const own, other = "forge.api.web.from.scanner.submit", "forge.api.web.from.other.submit"
	submit(own, about+","+comments, "there is none")
	id := submit(own, `"title": "Update the parser", "body": "It has a hole.", `+about, "new")
	for _, want := range []string{"new", "known"} {
		submit(own, about+","+comments, want)
	}
	submit(other, `"id": "`+id+`", `+strings.Replace(comments, "comment 7", "comment 8", 1), "new")
	submit(own, about+`, "title": "x", `+comments, "title")
	submit(own, about+`, "comments": {"count": 0}`, "comments.count")
	submit(own, about+`, "comments": {"count": 1, "account": "e\u202eve", "ref": "x", "at": "2026-11-20T11:00:00Z"}`, "comments.account")
	submit(own, about+`, "comments": {"count": 1, "body": "Closes #1"}`, "comments.body")
	shown, _ := request(t, nc, "forge.api.web.by.ada.show", `{"intent": "`+id+`"}`)
	told, _ := shown["comments"].(map[string]any)
	if got := fmt.Sprint(shown["title"], told["told"]); got != "Update the parser[findings/1 comment 7 findings/1 comment 8]" {
		t.Errorf("shown is %s", got)
	}
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	var events []string
	err := b.Changes.Watch(ctx, "web", 0, func() {}, func(p changes.Published) error {
		var ev struct{ Data document.Change }
		if err := json.Unmarshal(p.Event, &ev); err != nil || p.Kind != changes.Commented {
			return err
		}
		c := ev.Data.Comments
		if events = append(events, fmt.Sprint(ev.Data.By, " ", c.Count, " ", c.Account, " ", c.Ref)); len(events) == 2 {
			cancel()
		}
		return nil
	})
	if want := []string{"scanner 2 eve findings/1 comment 7", "other 2 eve findings/1 comment 8"}; err != nil || !slices.Equal(events, want) {
		t.Errorf("told is %q, %v", events, err)
	}
}

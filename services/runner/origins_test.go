package runner_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// field is a protobuf field that has a length.
func field(number int, parts ...string) string {
	data := strings.Join(parts, "")
	tag := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return string(binary.AppendUvarint(tag, uint64(len(data)))) + data
}

// inFormat is one submission of an event, in one of the formats, with a text of its own.
func inFormat(format, event int, text string) *nats.Msg {
	id := fmt.Sprintf("event-%d", event)
	m := nats.NewMsg(fmt.Sprintf("forge.intent.web%d.submit", event%10))
	switch format {
	case 0: // an Event: submit 5, intent 1, title 3, body 4, origin 15
		m.Data = []byte(field(5, field(1, field(3, text), field(4, text), field(15, field(1, "/scanner"), field(2, id)))))
	case 1:
		m.Data = fmt.Appendf(nil, `{"title": %q, "body": "b", "origin": {"system": "/scanner", "event_id": %q}}`, text, id)
	case 2:
		m.Data = fmt.Appendf(nil, `{"submit": {"intent": {"title": %q, "body": "b", "origin": {"system": "/scanner", "eventId": %q}}}}`, text, id)
	case 3:
		m.Header.Set("Content-Type", "application/cloudevents+json")
		m.Data = fmt.Appendf(nil, `{"specversion": "1.0", "type": "io.pfl-forge.intent.submit.v1", "source": "/scanner", "id": %q,
			"data": {"title": %q, "body": "b"}}`, id, text)
	}
	return m
}

// TestOriginIsOneIntent: 10,000 submissions of 1,000 events, in every format and at the
// same time, while runners come and go and the server restarts, are 1,000 intents.
func TestOriginIsOneIntent(t *testing.T) {
	t.Parallel()
	const each, senders = 10, 16
	distinct := testsize.Of(25, 1000)
	total := distinct * each
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stops := []func(){serving(t, s.Connect(t))}

	ctx, moved := wait.WhileMoving(t)
	var sending errgroup.Group
	sent := make(chan int, total)
	order := rand.Perm(total)
	for n := range senders {
		js, err := jetstream.New(client(t, s))
		if err != nil {
			t.Fatal(err)
		}
		sending.Go(func() error {
			for i := n; i < len(order); i += senders {
				m := inFormat(order[i]%4, order[i]/each, fmt.Sprintf("submission %d", order[i]))
				for {
					_, err := js.PublishMsg(ctx, m)
					if err == nil {
						break
					}
					if ctx.Err() != nil {
						return err
					}
				}
				sent <- i
			}
			return nil
		})
	}
	for i := range total {
		wait.For(t, sent)
		moved()
		switch {
		case i == total/2:
			s.Restart(t)
		case i%(total*3/20) == total*7/100:
			stops = append(stops, serving(t, s.Connect(t)))
		case i%(total*3/20) == total*7/50 && len(stops) > 1:
			stops[0]()
			stops = stops[1:]
		}
	}
	if err := sending.Wait(); err != nil {
		t.Fatal(err)
	}
	wait.Moving(t, "the runners are done", func() bool { idle, err := b.Events.Idle(t.Context()); return err == nil && idle }, func() int {
		moved()
		all, _ := b.Journal.Summaries(t.Context(), "")
		return len(all)
	})
	for _, stop := range stops {
		stop()
	}
	all, err := b.Journal.Summaries(ctx, "")
	if err != nil || len(all) != distinct {
		t.Errorf("there are %d intents, %v; want %d", len(all), err, distinct)
	}
	if dead, err := b.Dead(ctx); err != nil || len(dead) > 0 {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
	js, err := jetstream.New(client(t, s))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "FORGE_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("forge.event.*.*.submitted"))
	if err != nil || len(info.State.Subjects) != distinct {
		t.Fatalf("%d submissions are told, %v", len(info.State.Subjects), err)
	}
	for subject, n := range info.State.Subjects {
		if n != 1 {
			t.Errorf("%s is told %d times", subject, n)
		}
	}
}

package runner_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// TestFirstSubmissionAfterAStart: to let the first one in, a runner reads what is open, and asks
// for no list of all journals, by which the last records of those that have ended are read.
func TestFirstSubmissionAfterAStart(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := runUntil(t, s.Connect(t), 100)
	startWorkers(t, b, succeed)
	await(t, b, forge.StatusDone, submitSome(t, b, "ended", 5)...)
	stop()
	list, err := b.Journal.Open(t.Context(), journal.Open{})
	if err != nil || len(list.Intents) > 0 {
		t.Fatal(list, err)
	}
	data, err := json.Marshal(list)
	if err == nil {
		err = b.Objects.Put(t.Context(), objects.Name{Kind: objects.Open, ID: machine.Rules()}, bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := listen(t, client(t, s), "$JS.API.>")
	runUntil(t, s.Connect(t), 100)
	await(t, b, forge.StatusDone, submitSome(t, b, "first", 1)...)
	for _, line := range asked() {
		if strings.Contains(line, `"subjects_filter":"forge.journal.*.*"`) {
			t.Errorf("it asks for %.300s", line)
		}
	}
}

// listen returns what is sent on a subject from now on, a line each: the
// subject, a space, and the data.
func listen(t *testing.T, nc *nats.Conn, subject string) func() []string {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, m.Subject+" "+string(m.Data))
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(lines) == 0 {
			t.Error("nothing was sent")
		}
		return lines
	}
}

package agenttest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// ask sends a request of the Messages API, with as many tool results.
func ask(ctx context.Context, t *testing.T, base string, stream bool, results int) (status int, body string, err error) {
	t.Helper()
	messages := `{"role": "user", "content": "hi"}`
	for range results {
		messages += `, {"role": "user", "content": [{"type": "tool_result", "content": "r"}]}`
	}
	in := fmt.Sprintf(`{"model": "m", "stream": %t, "messages": [%s]}`, stream, messages)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/messages?beta=true", strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestScenarios(t *testing.T) {
	server := agenttest.NewServer(t)
	steps := server.Script("steps", agenttest.Steps(agenttest.Use("Read", "x"), agenttest.Say("done")))
	order := server.Script("order", agenttest.InOrder(agenttest.Fail(529, "overloaded_error", "busy"), agenttest.Say("done")))
	for _, tt := range []struct {
		base    string
		results int
		status  int
		want    string
	}{
		{steps, 0, 200, `"name":"Read"`},
		{steps, 1, 200, `"text":"done"`},
		{steps, 9, 200, `"text":"done"`},
		{order, 0, 529, `"overloaded_error"`},
		{order, 0, 200, `"text":"done"`},
	} {
		status, body, err := ask(t.Context(), t, tt.base, false, tt.results)
		if status != tt.status || !strings.Contains(body, tt.want) || err != nil {
			t.Errorf("%s, %d results: %d %s, %v", tt.base, tt.results, status, body, err)
		}
	}
	if r := server.Requests("steps"); len(r) != 3 || r[2].N != 2 || r[2].ToolResults != 9 || r[2].LastResult != "r" || r[2].LastUser != "hi" {
		t.Errorf("requests are %+v", r)
	}
	if got := server.Served("steps"); got != (agenttest.Usage{Input: 300, Output: 60}) {
		t.Errorf("served %+v", got)
	}
	if got := server.Served("none"); got != (agenttest.Usage{}) || server.Requests("none") != nil {
		t.Errorf("served %+v", got)
	}
}

// TestFaults shows the bytes that a client receives, and that only the usage in them is
// counted.
func TestFaults(t *testing.T) {
	usage := agenttest.Usage{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2}
	begun := usage
	begun.Output = 1
	for _, tt := range []struct {
		name          string
		reply         agenttest.Reply
		stream, whole agenttest.Usage // served
		body          string          // in the stream
		breaks        bool
	}{
		{"sound", agenttest.Reply{Thinking: "hm", Text: "x", Tool: "T", Input: 1}, usage, usage, "message_stop", false},
		{"cut at the start", agenttest.Reply{Fault: agenttest.CutStart}, begun, agenttest.Usage{}, "message_start", true},
		{"cut late", agenttest.Reply{Text: "x", Fault: agenttest.CutLate}, begun, agenttest.Usage{}, `"text":"x"`, true},
		{"garbage", agenttest.Reply{Fault: agenttest.Garbage}, agenttest.Usage{}, agenttest.Usage{}, "not a protocol", false},
		{"error", agenttest.Reply{Text: "busy", ErrorType: "e", Fault: agenttest.ErrorMiddle}, begun, agenttest.Usage{}, `"message":"busy"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := agenttest.NewServer(t)
			tt.reply.Usage = usage
			base := server.Script("s", agenttest.Steps(agenttest.Always(tt.reply)))
			_, body, err := ask(t.Context(), t, base, true, 0)
			if !strings.Contains(body, tt.body) || (err != nil) != tt.breaks {
				t.Errorf("%v\n%s", err, body)
			}
			if diff := cmp.Diff(tt.stream, server.Served("s")); diff != "" {
				t.Errorf("stream: %s", diff)
			}
			_, _, err = ask(t.Context(), t, base, false, 0)
			if (err != nil) != tt.breaks {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.stream.Add(tt.whole), server.Served("s")); diff != "" {
				t.Errorf("whole: %s", diff)
			}
		})
	}
}

func TestHangsUntilTheClientGivesUp(t *testing.T) {
	server := agenttest.NewServer(t)
	for name, want := range map[string]struct {
		fault  agenttest.Fault
		served agenttest.Usage
	}{
		"start":  {agenttest.HangStart, agenttest.Usage{}},
		"middle": {agenttest.HangMiddle, agenttest.Usage{Input: 100, Output: 1}},
	} {
		base := server.Script(name, agenttest.Steps(agenttest.Always(agenttest.Reply{Fault: want.fault})))
		patience := 100 * time.Millisecond
		wait.Until(t, "a request hangs at the "+name, func() bool { // one that did not reach the server by then has served nothing
			before := server.Served(name)
			if _, _, err := ask(wait.Briefly(t, patience), t, base, true, 0); err == nil {
				t.Fatal("it does not hang")
			}
			patience *= 2
			return server.Served(name) == before.Add(want.served)
		})
	}
}

// TestDrip has the events come one by one.
func TestDrip(t *testing.T) {
	server := agenttest.NewServer(t)
	base := server.Script("s", agenttest.Steps(agenttest.Always(agenttest.Reply{Text: "x", Drip: 20 * time.Millisecond})))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(`{"stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var at []time.Time
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if strings.HasPrefix(s.Text(), "data:") {
			at = append(at, time.Now())
		}
	}
	if len(at) != 6 || at[5].Sub(at[0]) < 80*time.Millisecond {
		t.Errorf("the events came at %v", at)
	}
}

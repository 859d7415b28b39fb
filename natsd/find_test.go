package natsd

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestSecondProcessFindsAndPublishes(t *testing.T) {
	dir := storeIn(t)
	s := start(t, dir)
	js := connect(t, s.Endpoint())
	cmd, _ := child(t, "find", dir)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetLastMsgForSubject(t.Context(), "s.from-second-process"); err != nil {
		t.Error(err)
	}
}

func TestFindReturnsTheEndpoint(t *testing.T) {
	dir := storeIn(t)
	if _, err := Find(t.Context(), "", dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("find created the directory")
	}
	s := start(t, dir)
	got, err := Find(t.Context(), "", dir)
	if err != nil {
		t.Fatal(err)
	}
	if *got != s.Endpoint() {
		t.Errorf("found %+v, want %+v", *got, s.Endpoint())
	}
}

// TestFindDuringStartsAndStops accepts two answers only.
func TestFindDuringStartsAndStops(t *testing.T) {
	dir := storeIn(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := Find(t.Context(), "", dir); err != nil && !errors.Is(err, ErrNotRunning) {
					t.Errorf("unclear error: %v", err)
					return
				}
			}
		})
	}
	for range 10 {
		s, err := Start(t.Context(), config(dir))
		if err != nil {
			t.Errorf("a finder disturbed the start: %v", err)
			break
		}
		if _, err := Find(t.Context(), "", dir); err != nil {
			t.Errorf("running but not found: %v", err)
		}
		s.Shutdown()
	}
	close(stop)
	wg.Wait()
}

// TestFindTrustsNoFile plants addresses beside a lock that is really held.
func TestFindTrustsNoFile(t *testing.T) {
	seen := make(chan string, 8)
	impostor := listen(t, seen)
	tests := map[string]struct {
		mode   os.FileMode
		change func(*Endpoint)
		want   string
	}{
		"other program":   {0o600, func(e *Endpoint) { e.URL = "nats://" + impostor }, "another program"},
		"nobody":          {0o600, func(e *Endpoint) { e.URL = "nats://127.0.0.1:1" }, "does not answer"},
		"remote":          {0o600, func(e *Endpoint) { e.URL = "nats://192.0.2.1:4222" }, "loopback"},
		"name":            {0o600, func(e *Endpoint) { e.URL = "nats://localhost:4222" }, "loopback"},
		"other scheme":    {0o600, func(e *Endpoint) { e.URL = "http://127.0.0.1:80" }, "loopback"},
		"earlier start":   {0o600, func(e *Endpoint) { e.ID = "earlier" }, "earlier"},
		"no token":        {0o600, func(e *Endpoint) { e.Token = "" }, "missing"},
		"readable by all": {0o644, func(*Endpoint) {}, "0600"},
	}
	dir := storeIn(t)
	s := start(t, dir)
	file := filepath.Join(dir, clientFile)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := s.Endpoint()
			tt.change(&e)
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(file, b, tt.mode), os.Chmod(file, tt.mode)); err != nil {
				t.Fatal(err)
			}
			_, err = find(t.Context(), "", dir, 10*time.Millisecond)
			if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	select {
	case got := <-seen:
		if got != "" {
			t.Errorf("the impostor was told %q", got)
		}
	case <-wait.Context(t).Done():
		t.Error("the impostor was never asked")
	}
}

// listen greets like a nats-server of another name and reports what it is told.
func listen(t *testing.T, seen chan<- string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, `INFO {"server_name":"somebody"}`+"\r\n")
			b, _ := io.ReadAll(c)
			_ = c.Close()
			select {
			case seen <- string(b):
			default:
			}
		}
	})
	return l.Addr().String()
}

package natsd

import (
	"os"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestFullDiskIsNoticed(t *testing.T) {
	cmd, out := child(t, "full", storeIn(t))
	var lines []string
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 {
		t.Fatalf("got %q", lines)
	}
	// The streams' file is full, then the disk.
	for i, want := range []string{"publish: context canceled <nil>", "write error: ", "free some space"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
}

func TestRemovedStoreIsNoticed(t *testing.T) {
	dir := storeIn(t)
	s := start(t, dir)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("got %v", err)
	}
}

func TestStoreWithoutRoomIsNoticed(t *testing.T) {
	cfg := config(storeIn(t))
	cfg.MaxStore = 1 << 20
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	js := connect(t, s.Endpoint())
	ctx := wait.Context(t)
	for err == nil {
		if err = s.Healthy(ctx); err != nil {
			break
		}
		_, err = js.Publish(ctx, "s.a", make([]byte, 32<<10))
	}
	if !strings.Contains(err.Error(), "clean finished intents") {
		t.Errorf("writes failed before it was noticed: %v", err)
	}
}

package demand

import (
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"16MiB": 16 << 20, "8GiB": 8 << 30, "1TiB": 1 << 40, "1024TiB": 1 << 50, "4194304MiB": 4 << 40} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "8", "8G", "8GB", "8Gi", "8 GiB", "GiB", "-8GiB", "+8GiB", "8.5GiB", "0GiB", "15MiB", "1025TiB", "8gib", "8GiB ", "0x8GiB", "1_0GiB",
		"99999999999999999999GiB", "4294967295TiB", "unlimited", "\x1b[31m8GiB",
	} {
		got, err := ParseSize(text)
		if err == nil || got != 0 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestBoundsOfAnEnvironment(t *testing.T) {
	env := map[string]string{MemoryVariable: "2GiB"}
	getenv := func(name string) string { return env[name] }
	if b, err := ReadBounds(getenv); err != nil || b != (Bounds{Memory: 2 << 30}) {
		t.Errorf("got %+v, %v", b, err)
	}
	// An error names the variable, and nothing half read is returned.
	env[DiskVariable] = "all"
	if b, err := ReadBounds(getenv); err == nil || b != (Bounds{}) || !strings.HasPrefix(err.Error(), `FORGE_COMMAND_DISK: "all"`) {
		t.Errorf("got %+v, %v", b, err)
	}
}

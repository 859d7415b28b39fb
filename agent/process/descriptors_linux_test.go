package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoDescriptorIsInherited opens a directory as a shell with exec 9<dir leaves it to
// what it starts. Neither a command nor the process above it has it.
func TestNoDescriptorIsInherited(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("of nobody's concern"), 0o600); err != nil {
		t.Fatal(err)
	}
	var open []int
	for range 20 { // more than the supervisor has
		fd, err := unix.Open(outside, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		open = append(open, fd)
	}
	var script strings.Builder
	for _, fd := range open {
		for _, process := range []string{"self", "$PPID"} {
			fmt.Fprintf(&script, "cat /proc/%[1]s/fd/%[2]d/secret; echo x > /proc/%[1]s/fd/%[2]d/taken\n", process, fd)
		}
	}
	script.WriteString("ls -l /proc/self/fd /proc/$PPID/fd; true")
	for _, in := range confinements {
		if in.name == "sandbox" && !offered(t) {
			continue
		}
		r := run(t, in.make(t, script.String()))
		if out := string(r.Output); strings.Contains(out, "of nobody's concern") || strings.Contains(out, outside+"\n") {
			t.Errorf("%s: a descriptor is inherited:\n%s", in.name, out)
		}
		if _, err := os.Stat(filepath.Join(outside, "taken")); err == nil {
			t.Errorf("%s: a command writes by an inherited descriptor", in.name)
		}
	}
}

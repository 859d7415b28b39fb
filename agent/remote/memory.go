package remote

import (
	"os"
	"strconv"
	"strings"
)

// memoryEvents are the files in which the kernel counts what it has killed in this
// container, with control groups of version 2 and 1.
var memoryEvents = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// memoryKills returns how many processes of this container the kernel has killed because
// there was no memory left; 0 where that cannot be seen.
func memoryKills() int {
	for _, path := range memoryEvents {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				return n
			}
		}
	}
	return 0
}

package environ

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The fields of /proc/<pid>/stat behind the name of the program, where the
// block of the environment begins and ends.
const (
	envStart = 47
	envEnd   = 48
)

// erase overwrites the values of variables in the block that the kernel gave the
// process, with zeros. It does not matter that it fails: the block is as it was
// before, and no process of another may read it once process.Protect was called.
func erase(names []string) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	// The name of the program, in parentheses, may have spaces and parentheses in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= envEnd {
		return
	}
	start, err := strconv.ParseInt(fields[envStart], 10, 64)
	end, err2 := strconv.ParseInt(fields[envEnd], 10, 64)
	if err != nil || err2 != nil || start <= 0 || end <= start {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = memory.Close() }()
	// Go's own strings of the environment lie in the same memory: what is read
	// later of these variables is zeros, so Hide has copied them before.
	block := make([]byte, end-start)
	if _, err := memory.ReadAt(block, start); err != nil {
		return
	}
	at := start
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte("="))
		if slices.Contains(names, string(name)) {
			_, _ = memory.WriteAt(make([]byte, len(value)), at+int64(len(entry)-len(value)))
		}
		at += int64(len(entry)) + 1
	}
	clear(block)
}

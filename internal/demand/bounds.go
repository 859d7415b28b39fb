package demand

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds tell how much of the machine each command may take, all its processes together.
// A zero field stands for the default, which follows from what the machine has.
type Bounds struct {
	// Memory is in bytes. Where it cannot be held, no command runs: a bound
	// that is only believed in is worse than none.
	Memory int64
	// Disk is in bytes, for each directory that the command's sandbox lets it write to.
	Disk int64
}

// The environment variables that have the bounds.
const (
	MemoryVariable = "FORGE_COMMAND_MEMORY"
	DiskVariable   = "FORGE_COMMAND_DISK"
)

const (
	// leastBound is the smallest bound that is taken for meant: below it no shell starts.
	leastBound = 16 << 20
	// mostBound is far more than any machine has.
	mostBound = 1 << 50
)

// units are the endings of a size, with the bits by which they shift it.
var units = map[string]int{"MiB": 20, "GiB": 30, "TiB": 40}

// ParseSize returns the bytes of a size, such as 512MiB, 8GiB or 1TiB.
func ParseSize(s string) (int64, error) {
	for unit, shift := range units {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if size := int64(n) << shift; err == nil && size >= leastBound && size <= mostBound {
			return size, nil
		}
	}
	return 0, fmt.Errorf("%q is not a size from 16MiB to 1024TiB, such as 512MiB or 8GiB", s)
}

// ReadBounds returns the bounds of an environment. An empty variable is as good as none.
func ReadBounds(getenv func(string) string) (b Bounds, err error) {
	for name, field := range map[string]*int64{MemoryVariable: &b.Memory, DiskVariable: &b.Disk} {
		text := getenv(name)
		if text == "" {
			continue
		}
		if *field, err = ParseSize(text); err != nil {
			return Bounds{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

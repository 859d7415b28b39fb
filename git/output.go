package git

import (
	"fmt"
	"strings"
)

// names splits the NUL-separated output of a command.
func names(out []byte, err error) ([]string, error) {
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
}

// change is one path that differs between two trees. A mode of zeros means that the path is not there.
type change struct {
	oldMode, newMode, oldOID, newOID, path string
}

// rawChanges reads the output of a raw diff.
func rawChanges(out []byte, err error) ([]change, error) {
	f, err := names(out, err)
	var all []change
	for i := 0; i+1 < len(f); i += 2 {
		meta := strings.Fields(strings.TrimPrefix(f[i], ":"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("diff-tree: cannot read %q", clip(f[i]))
		}
		all = append(all, change{oldMode: meta[0], newMode: meta[1], oldOID: meta[2], newOID: meta[3], path: f[i+1]})
	}
	return all, err
}

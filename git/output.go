package git

import (
	"fmt"
	"strings"
)

// SplitNUL splits the NUL-separated output of a command.
func SplitNUL(out []byte, err error) ([]string, error) {
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
}

// RawChange is one path that differs between two trees. A mode of zeros means that the
// path is not there.
type RawChange struct {
	OldMode, NewMode, OldOID, NewOID, Path string
}

// RawChanges reads the output of a raw diff.
func RawChanges(out []byte, err error) ([]RawChange, error) {
	f, err := SplitNUL(out, err)
	var all []RawChange
	for i := 0; i+1 < len(f); i += 2 {
		meta := strings.Fields(strings.TrimPrefix(f[i], ":"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("diff-tree: cannot read %q", Clip(f[i]))
		}
		all = append(all, RawChange{OldMode: meta[0], NewMode: meta[1], OldOID: meta[2], NewOID: meta[3], Path: f[i+1]})
	}
	return all, err
}

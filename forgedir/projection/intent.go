package projection

import (
	"bytes"
	"fmt"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// DecodeIntent reads an intent's own file, and returns the places of its fields.
func DecodeIntent(data []byte) (document.Intent, *strictyaml.Positions, error) {
	var d document.Intent
	pos, err := strictyaml.Decode(data, &d, strictyaml.Options{MaxBytes: disk.MaxIntent})
	return d, pos, err
}

// EncodeIntent returns an intent's own file, byte for byte as Write writes it.
func EncodeIntent(d document.Intent) ([]byte, error) {
	revision := d.Revision
	d.Revision = 0
	content, err := strictyaml.Encode(d)
	return withRevision(content, revision), err
}

// withRevision adds the revision as the last line, so that a file that was cut off
// lacks it.
func withRevision(content []byte, revision int64) []byte {
	return fmt.Appendf(bytes.Clone(content), "revision: %d\n", revision)
}

// SplitRevision takes the last line off an intent's own file; ok is false if that is
// no revision as it is written here.
func SplitRevision(data []byte) (content []byte, revision int64, ok bool) {
	i := bytes.LastIndex(data, []byte("\nrevision: "))
	if i < 0 {
		return nil, 0, false
	}
	if _, err := fmt.Sscanf(string(data[i:]), "\nrevision: %d\n", &revision); err != nil {
		return nil, 0, false
	}
	content = data[:i+1]
	return content, revision, bytes.Equal(withRevision(content, revision), data)
}

package forgedir

import (
	"bytes"
	"fmt"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// decodeIntent reads an intent's file.
func decodeIntent(data []byte) (document.Intent, *strictyaml.Positions, error) {
	var d document.Intent
	pos, err := strictyaml.Decode(data, &d, strictyaml.Options{MaxBytes: maxIntentBytes})
	return d, pos, err
}

// encodeIntent writes an intent's file as it is written from a view.
func encodeIntent(d document.Intent) ([]byte, error) {
	revision := d.Revision
	d.Revision = 0
	content, err := strictyaml.Encode(d)
	return withRevision(content, revision), err
}

// withRevision completes the encoding of an intent without a revision.
func withRevision(content []byte, revision int64) []byte {
	return fmt.Appendf(bytes.Clone(content), "revision: %d\n", revision)
}

// splitRevision undoes withRevision; ok is false if data did not come from it.
func splitRevision(data []byte) (content []byte, revision int64, ok bool) {
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

func texts[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

var summaryField = (&forgev1.Record{}).ProtoReflect().Descriptor().Fields().ByName("summary").Number()

// ReadSummary decodes nothing of a record but its summary, which is a small part
// of it.
func ReadSummary(record []byte) (forge.Summary, error) {
	var summary []byte
	for rest := record; len(rest) > 0; {
		number, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return forge.Summary{}, Garbage("Record", "%w", protowire.ParseError(n))
		}
		value := rest[n:]
		size := protowire.ConsumeFieldValue(number, typ, value)
		if size < 0 {
			return forge.Summary{}, Garbage("Record", "%w", protowire.ParseError(size))
		}
		if number == summaryField && typ == protowire.BytesType {
			summary, _ = protowire.ConsumeBytes(value)
		}
		rest = value[size:]
	}
	if summary == nil {
		return forge.Summary{}, Garbage("Record", "summary is missing")
	}
	return summaries.Unmarshal(summary)
}

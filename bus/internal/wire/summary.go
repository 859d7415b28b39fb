package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	forge "github.com/pfl-forge/pfl-forge"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// The numbers of fields of a record that are read alone.
var (
	summaryField  = fieldOfRecord("summary")
	previousField = fieldOfRecord("previous")
)

// fieldOfRecord returns the number of a field of a record.
func fieldOfRecord(name protoreflect.Name) protowire.Number {
	return (&forgev1.Record{}).ProtoReflect().Descriptor().Fields().ByName(name).Number()
}

// ReadSummary decodes nothing of a record but its summary, which is a small part
// of it.
func ReadSummary(record []byte) (forge.Summary, error) {
	parts, err := readField(record, summaryField)
	if err != nil {
		return forge.Summary{}, err
	}
	if len(parts) == 0 {
		return forge.Summary{}, Garbage("Record", "summary is missing")
	}
	// A message that is there more than once is the sum of all, as one after the other is.
	return Summaries.Unmarshal(bytes.Join(parts, nil))
}

// ReadPrevious decodes nothing of a record but the hash of the message before it; empty if the
// record carries none. It reads records of newer versions as well.
func ReadPrevious(record []byte) string {
	parts, err := readField(record, previousField)
	if err != nil || len(parts) == 0 {
		return ""
	}
	return string(parts[len(parts)-1]) // of a text the last one counts
}

// ReadKnown reads a record that may be of a newer version, without the fields that
// this version does not know. Nothing can be decided by that, but it tells what
// else would be lost with the record. It is zero for bytes that are no record.
func ReadKnown(record []byte) forge.Record { return Records.Known(record) }

// readField returns the bytes of a field of a record, in the order in which they are
// there: none if it is missing.
func readField(record []byte, field protowire.Number) ([][]byte, error) {
	var found [][]byte
	for rest := record; len(rest) > 0; {
		number, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil, Garbage("Record", "%w", protowire.ParseError(n))
		}
		value := rest[n:]
		size := protowire.ConsumeFieldValue(number, typ, value)
		if size < 0 {
			return nil, Garbage("Record", "%w", protowire.ParseError(size))
		}
		if number == field && typ == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(value)
			found = append(found, b)
		}
		rest = value[size:]
	}
	return found, nil
}
